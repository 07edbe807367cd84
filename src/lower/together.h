// Together is what ranks do together between an order of a checkpoint and its answer: they meet, each does
// its part, and a child may work on. The agent's alone, all threads stopped (but while a child works).
#pragma once

#include <optional>
#include <string>

#include "base/rank.h"
#include "lower/meeting.h"
#include "wire/message.h"

namespace fermata::lower {

// No member throws: what goes wrong is in the answer.
class Together {
  public:
    Together(uint32_t epoch, Rank rank);
    virtual ~Together() = default;
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

    bool failed() const { return !saved_.error.empty(); }
    // Looks for the end of the meeting; then everybody() says whether all ranks take part.
    bool over() { return meeting_->over(); }
    bool everybody() const { return meeting_->everybody(); }

    // The meeting said that every rank takes part, but this one has heard that the checkpoint is given up: it
    // does only what the others need it for.
    virtual void help() = 0;
    // A child works: poll() finds this readable when it has something to say; -1: none does.
    virtual int descriptor() const = 0;
    // Is the child done, one way or the other?
    virtual bool child_done() = 0;
    // The answer for the root.
    virtual wire::Saved conclude() = 0;

  protected:
    // Begins the meeting, last of a constructor: one that has begun may only be left when it is over.
    // failed() when it could not begin.
    void meet();
    // The first trouble counts.
    void note(const std::string& error);

    const Rank rank_;
    wire::Saved saved_;

  private:
    std::optional<Meeting> meeting_;
};

}  // namespace fermata::lower
