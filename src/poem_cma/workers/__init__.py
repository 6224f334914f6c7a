"""Many workers: processes of our own, anybody's executor, Dask, Ray.

`task` is what travels, `crew` sees to it that every task is answered once whatever happens, `processes`, `futures`,
`dask` and `ray` are the places where tasks are worked on.
"""

from poem_cma.workers.workers import Workers as Workers
