"""Generators: mpi/mpi.json -> headers, wrappers, bindings, fronts."""
