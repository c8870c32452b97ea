"""Storage of runs, in memory or in a folder.

A run folder is written while the chains run, and survives a kill at any moment:

    run.json              settings (model, sampler, seed, numbers of draws) and versions
    data.chunk            observations, and the initial trajectory if one was given
    chain-0/0.chunk …     consecutive draws of a chain, and its checkpoint after them
    lock                  held while a process works on the run

A chunk is a line with the digest of what follows, then an archive of NumPy arrays. It is written under a temporary
name and renamed when complete, so a kill leaves all earlier chunks intact. The checkpoint holds the state of the chain
and of its random generator: a run continues from its last chunk as if it had never stopped, and a damaged chunk is
recomputed from the one before it. Nothing is ever unpickled, and no file name is ever read from a file.
"""

from ihmm.store._base import Backend as Backend
from ihmm.store._base import ChainWriter as ChainWriter
from ihmm.store._base import Checkpoint as Checkpoint
from ihmm.store._base import Chunk as Chunk
from ihmm.store._base import RunContents as RunContents
from ihmm.store._base import RunSettings as RunSettings
from ihmm.store._base import SweepRange as SweepRange
from ihmm.store.folder import RunFolder as RunFolder
from ihmm.store.loading import load as load
from ihmm.store.locking import busy as busy
from ihmm.store.memory import MemoryBackend as MemoryBackend
from ihmm.store.memory import MemoryWriter as MemoryWriter
from ihmm.store.run_json import version as version
from ihmm.store.saving import save as save
