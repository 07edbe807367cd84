// Answers of MPI_Dims_create: a question has one answer in the whole life of a job, whatever library it is
// continued on. Libraries divide differently (72 processes in two dimensions: 12 x 6 in Open MPI, 9 x 8 in
// MPICH), and a grid that some ranks know is not to be another in the rest.
#pragma once

#include <cstdint>

namespace fermata::front {

// A question and its answer; more dimensions are not remembered.
struct Grid {
    static constexpr int kMost = 16;
    int32_t nodes;
    int32_t count;
    int32_t asked[kMost];
    int32_t dims[kMost];
};

// Fills `dims` as before, when this was asked before.
bool grid_known(int nodes, int count, int* dims) noexcept;
// The first answer to `asked` (of which `dims` were filled in) stays; of so many questions (1024) only.
void grid_note(const Grid& grid) noexcept;
// Tells each rank what all were answered. Collective over the ranks of the job, at a rebuild.
int grids_share() noexcept;

}  // namespace fermata::front
