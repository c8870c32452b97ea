"""dynamax: EM from k-means, restarts vectorised in one compiled call, the number of states by BIC."""

import jax
import jax.numpy as jnp
import numpy as np
from common import RESTARTS, Problem, Stopwatch, choose_by_bic, jax_compilations, run
from dynamax.hidden_markov_model import CategoricalHMM, GaussianHMM


def fit(problem: Problem) -> dict:
    y, held_out = jnp.asarray(problem.train[..., None]), jnp.asarray(problem.held_out[..., None])
    n_symbols = int(problem.train.max()) + 1 if problem.symbols else 0
    keys = jax.random.split(jax.random.PRNGKey(problem.seed), RESTARTS)

    def best_of_restarts(n_states: int):
        hmm = CategoricalHMM(n_states, 1, n_symbols) if n_symbols else GaussianHMM(n_states, 1)
        options = {} if n_symbols else {"method": "kmeans", "emissions": y}
        starts, properties = zip(*(hmm.initialize(key, **options) for key in keys), strict=True)

        def climb(parameters):
            found, _ = hmm.fit_em(parameters, properties[0], y, verbose=False)
            return found, score(hmm, found, y).sum()

        found, log_likelihood = jax.jit(jax.vmap(climb))(jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts))
        best = int(jnp.nanargmax(log_likelihood))
        free = n_states**2 - 1 + n_states * (n_symbols - 1 if n_symbols else 2)
        bic = -2 * float(log_likelihood[best]) + free * np.log(y.size)
        return bic, (hmm, jax.tree.map(lambda leaf: leaf[best], found))

    watch = Stopwatch()
    with jax_compilations() as compiled:
        n_states, (hmm, parameters) = choose_by_bic(best_of_restarts, least=2)  # it has no one-state model
    spent = watch.read() | compiled
    return spent | {"n_states": n_states, "held_out": np.asarray(score(hmm, parameters, held_out)).tolist()}


def score(hmm, parameters, y):
    """log p(y) of every sequence."""
    return jax.vmap(lambda row: hmm.marginal_log_prob(parameters, row))(y)


if __name__ == "__main__":
    run(fit)
