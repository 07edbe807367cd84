"""Generators: api/mpi.json -> headers, wrappers, bindings, fronts."""
