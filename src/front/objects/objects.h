// Functions that services, MPI_Init and MPI_Finalize call in this room at the turning points of a rank's
// life.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata::replay {
struct Orders;  // replay/exchange.h
}

namespace fermata::front {

// Everything that needs no lower half: called by objects_start, and before it by whatever MPI allows before
// MPI_Init.
void objects_boot() noexcept;
// In MPI_Init, upper thread, before the first other call; or by the agent, when a checkpoint comes before
// that (then MPI_Init finds it done): predefined objects, WORLD and SELF with their clocks. Front::table,
// world_rank, world_size, thread_level and clock are set.
void objects_start() noexcept;
// In MPI_Finalize, upper thread, before the real one: delete callbacks of MPI_COMM_SELF's attributes (then of
// WORLD's), last set first.
void objects_finalize() noexcept;

// May a checkpoint start? 0, or why not.
int objects_refuse(char* why, size_t size) noexcept;
// Must a checkpoint that is on its way be given up? Null, or why.
const char* objects_give_up() noexcept;
// Agent, all ranks frozen and drained, before the image is written: asks the library for what only it knows
// (file positions) and completes accesses to windows. Collective over all ranks. 0, or an error class.
int objects_before_save() noexcept;
// Lower main thread at restart, all ranks together: makes every real object again, or of communicators those
// that the message logs name. 0, or 1 with one line.
int objects_rebuild(const replay::Orders* orders, char* error, size_t size) noexcept;

}  // namespace fermata::front
