// InJob is the job of `fermata run` that this process is a rank of; under another launcher there is none, and
// nothing is asked and heard. The functions of Fermata's front are found by name.
#pragma once

#include <cstdint>
#include <string>

namespace fermata::api {

class InJob {
  public:
    InJob();

    struct Wish {
        uint64_t number = 0;  // of the newest wish for a save; 0 = none
        bool exit = false;    // the program shall end then
        uint64_t life = 0;    // changes when a restart of the whole process has put it back
    };
    Wish wish() const;

    void opened(const std::string& directory) const;
    // A new start of the program would go on from this generation.
    void exists(uint32_t generation, int64_t step, const std::string& directory) const;
    // `answers`: the wish that was the newest when the save began.
    void saved(uint64_t answers, uint32_t generation, int64_t step, const std::string& directory) const;
    void failed(uint64_t answers, const std::string& why) const;

  private:
    void say(int what, uint64_t answers, uint32_t generation, int64_t step, const std::string& text) const;
    uint64_t (*asks_)(int* exit, uint64_t* life);
    void (*hears_)(int what, uint64_t answers, uint32_t generation, int64_t step, const char* text);
};

}  // namespace fermata::api
