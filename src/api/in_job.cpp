#include "api/in_job.h"

#include <dlfcn.h>

namespace fermata::api {

// src/front/posix/own_state.cpp.
InJob::InJob()
    : asks_(reinterpret_cast<decltype(asks_)>(::dlsym(RTLD_DEFAULT, "fermata_job_asks_1"))),
      hears_(reinterpret_cast<decltype(hears_)>(::dlsym(RTLD_DEFAULT, "fermata_job_hears_1"))) {}

InJob::Wish InJob::wish() const {
    Wish wish;
    int exit = 0;
    if (asks_) wish.number = asks_(&exit, &wish.life);
    wish.exit = exit != 0;
    return wish;
}

void InJob::say(int what, uint64_t answers, uint32_t generation, int64_t step,
                const std::string& text) const {
    if (hears_) hears_(what, answers, generation, step, text.c_str());
}

void InJob::opened(const std::string& directory) const { say(1, 0, 0, 0, directory); }
void InJob::exists(uint32_t generation, int64_t step, const std::string& directory) const {
    say(2, 0, generation, step, directory);
}
void InJob::saved(uint64_t answers, uint32_t generation, int64_t step, const std::string& directory) const {
    say(3, answers, generation, step, directory);
}
void InJob::failed(uint64_t answers, const std::string& why) const { say(4, answers, 0, 0, why); }

}  // namespace fermata::api
