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
    if (asks_) wish.number = asks_(&exit, &wish.life, &wish.captured);
    wish.exit = exit != 0;
    return wish;
}

void InJob::say(int what, const Wish& began, uint32_t generation, int64_t step,
                const std::string& text) const {
    if (hears_) hears_(what, began.number, began.life, began.captured, generation, step, text.c_str());
}

void InJob::opened(const std::string& directory) const { say(1, {}, 0, 0, directory); }
void InJob::exists(uint32_t generation, int64_t step, const std::string& directory) const {
    say(2, {}, generation, step, directory);
}
void InJob::saved(const Wish& began, uint32_t generation, int64_t step, const std::string& directory) const {
    say(3, began, generation, step, directory);
}
void InJob::failed(const Wish& began, const std::string& why) const { say(4, began, 0, 0, why); }

}  // namespace fermata::api
