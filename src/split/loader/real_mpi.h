// MPI libraries that are none of ours, found in files.
#pragma once

#include <string>

#include "split/loader/elf_file.h"

namespace fermata::split {

// A library that implements MPI and is no front.
bool is_real_mpi(const ElfFile& library);
// A program that an MPI library was linked into.
bool has_mpi_inside(const ElfFile& program);

}  // namespace fermata::split
