// Recovery decides what comes after a life of a job that has failed: another one, from which generation and
// when, or the end with a report. No clock and no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"

namespace fermata::life {

struct Life {
    std::string began;          // "2026-11-26 09:00:00"
    double seconds = 0;         // it has lasted
    Generation from;            // none: from the program's start
    Generation newest;          // of the job, at its end; none: no checkpoint was ever taken
    bool saves_itself = false;  // a new start of the program goes on from its own state, the newest there is
    bool saved_itself = false;  // in this life
    int code = 0;               // exit code
    std::string why;            // for people
    int rank = -1;              // that was lost first; -1: none, or nobody knows
};

class Recovery {
  public:
    // `newest`: what the job goes on from now; none: it begins.
    Recovery(int most_restarts, Generation newest)
        : left_(most_restarts), most_(most_restarts), newest_(newest) {}

    struct Next {
        enum class What {
            newest,   // another life from the newest generation
            earlier,  // from the one before it, or once more from the newest when there is none
            anew,     // the program from its beginning, which restores its own state
            give_up,
        } what = What::give_up;
        double pause = 0;  // seconds
        std::string why;   // given up
    };
    Next after(const Life& life);
    // Another life would come after this one.
    bool goes_on_after(const Life& life) const {
        return Recovery(*this).after(life).what != Next::What::give_up;
    }
    // A line for each life; empty as long as there was one only.
    std::vector<std::string> report() const;
    int restarts() const { return most_ - left_; }

  private:
    int left_;
    const int most_;
    Generation newest_;
    double pause_ = 0;  // s; the next one
    bool went_back_ = false;
    std::vector<Life> lives_;
};

}  // namespace fermata::life
