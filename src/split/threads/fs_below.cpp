#include "split/threads/fs_below.h"

#include <atomic>

namespace fermata::split::threads {
namespace {

std::atomic<bool> g_written = true;
std::atomic<uint64_t> g_instead = 0;

}  // namespace

uint64_t fs_below(uint64_t lower_fs) noexcept { return g_written ? lower_fs : g_instead.load(); }

bool crossings_write_fs() noexcept { return g_written; }
void write_fs_from_now_on() noexcept { g_written = true; }
void leave_fs(uint64_t instead) noexcept {
    g_instead = instead;
    g_written = false;
}

}  // namespace fermata::split::threads
