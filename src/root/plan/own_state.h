// OwnState is what the root knows of a program that saves its own state (libfermata): what the program has
// said, and which wishes for a save it has not answered yet. No clock and no I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "root/plan/request.h"
#include "wire/message.h"

namespace fermata::root {

class OwnState {
  public:
    // ---- what the program has said

    void heard(const wire::OwnState& said, int64_t now);
    // Its ranks compute, since `now` (ms); it may not have opened libfermata yet. What was said to ranks that
    // were still on their way back from an image nobody has heard.
    void runs(int64_t now) { runs_since_ = now, again_ = true; }
    // Processes were saved as a whole: that is newer than what the program began to save before.
    void whole_committed(uint32_t epoch);

    bool used() const { return used_; }      // the program uses libfermata
    bool exists() const { return exists_; }  // a new start of it goes on from something
    bool newest() const { return newest_; }  // and that is newer than every generation of this life
    bool saved() const { return saved_; }    // in this life
    // "gen-000003 in DIR, step 12", or empty.
    const std::string& what() const { return what_; }

    // ---- wishes

    // `number`: not 0, and no earlier one's. ms.
    void wish(const Request& request, uint64_t number, int64_t now, int64_t end);
    // The word for the program now: the newest wish, when it is new, or was said some seconds ago, or that
    // there is none any more.
    std::optional<wire::AskProgram> take_word(int64_t now);
    struct Answer {
        Request request;
        Outcome outcome;
    };
    // Takes the answers to wishes that were answered, or whose time is over; first come, first.
    std::vector<Answer> take_answers(int64_t now);
    // All that are left, the job being at its end.
    std::vector<Answer> take_rest(const std::string& why);
    // A wish that asks for the end is on its way.
    bool stopping() const;
    // The program has heard that it shall end.
    bool asked_to_end() const { return exit_ && told_ > 0; }
    // Time until which the program, which has answered, is to end by itself. ms; 0 = no.
    int64_t ends_by() const { return ends_by_; }

  private:
    struct Wish {
        Request request;
        uint64_t number;
        int64_t began, end;
    };
    Answer saved(const Wish& wish, int64_t now);
    std::optional<Answer> too_late(const Wish& wish, int64_t now) const;
    static Answer failed(const Wish& wish, ExitCode code, const std::string& why);

    bool used_ = false, exists_ = false, newest_ = false, saved_ = false;
    uint32_t began_ = 0;  // wire::OwnState::began of the newest save
    uint32_t whole_ = 1;  // 1 + the epoch of the newest whole of this life, as wire::OwnState::began
    std::string what_, directory_;
    Generation generation_;
    std::deque<Wish> wishes_;
    std::vector<Answer> answers_;
    uint64_t number_ = 0;      // of the newest wish
    bool taken_back_ = false;  // the program is to hear that a wish's time is over
    bool exit_ = false;        // one of them asks for the end
    bool again_ = false;       // the program has just come, and may not have heard what was said
    int64_t told_ = 0;         // ms
    int64_t runs_since_ = 0;   // ms; 0 = not yet
    int64_t ends_by_ = 0;
};

}  // namespace fermata::root
