// describe_objects() lists the MPI objects of this rank for people: the blob `mpi` of an image.
#pragma once

#include <cstddef>

namespace fermata::front {

// Records of split/mpi_objects.h: how many bytes they are; written only where `capacity` holds them all. No
// malloc, no TLS.
size_t describe_objects(void* out, size_t capacity) noexcept;

}  // namespace fermata::front
