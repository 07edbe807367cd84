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
        uint64_t number = 0;    // of the newest wish for a save; 0 = none
        bool exit = false;      // the program shall end then
        uint64_t life = 0;      // changes when a restart of the whole process has put it back
        uint32_t captured = 0;  // changes when a checkpoint of the whole process has captured it
    };
    Wish wish() const;

    void opened(const std::string& directory) const;
    // A new start of the program would go on from this generation.
    void exists(uint32_t generation, int64_t step, const std::string& directory) const;
    // `began`: what wish() was when the save began.
    void saved(const Wish& began, uint32_t generation, int64_t step, const std::string& directory) const;
    void failed(const Wish& began, const std::string& why) const;

  private:
    void say(int what, const Wish& began, uint32_t generation, int64_t step, const std::string& text) const;
    uint64_t (*asks_)(int* exit, uint64_t* life, uint32_t* captured);
    void (*hears_)(int what, uint64_t answers, uint64_t life, uint32_t captured, uint32_t generation,
                   int64_t step, const char* text);
};

}  // namespace fermata::api
