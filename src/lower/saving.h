// A rank's part of one checkpoint from Save to Saved: the meeting with the other ranks, the capture, and the
// writing by this process or by a child. The agent's alone, all threads stopped (but while a child writes).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lower/capture.h"
#include "lower/together.h"
#include "split/shared/roster.h"
#include "wire/message.h"

namespace fermata::lower {

// Facts about a rank that are the same in all its images.
struct SavedRank {
    Rank rank;
    uint32_t size;
    uint64_t job = 0;  // image::Identity::job
    std::string program;
    image::KeyPointer key;  // null: images are not encrypted
    bool files = true;      // the program's files are kept
    std::string node;       // where it runs
    std::string cpu;        // level of CPUs that the program is kept to; "" = none
};

class Saving : public Together {
  public:
    // `alone`: without the other ranks, whose libraries may be in any state; the order says what they share.
    Saving(const SavedRank& who, const wire::Save& order, LastImage& last, bool alone);
    ~Saving() override;

    void help() override;
    // Does what ranks do together before each saves, then captures what the image holds.
    void capture();
    // Only ranks that get copies on other nodes save, and this one does not.
    bool rests() const { return rests_; }
    // Memory of its stream, when this rank gets one; -1: it does not.
    int stream() const { return stream_; }
    // Why it gets none, though it was asked for; "" = there is no reason.
    const std::string& no_copy() const { return no_copy_; }
    // The image goes into a file of several: it needs `room` bytes there.
    bool shared() const { return captured_->image->shared(); }
    uint64_t room() const { return captured_->image->writer().room(); }
    // Writes the image, or makes the child that does; `begin`: its place in a file of several. Lines for
    // the user.
    std::vector<std::string> write(std::optional<uint64_t> begin);

    // The program may go on while a child writes, as Save has asked: said also when there is no child.
    bool let_program_go() const { return options_.forked && !failed(); }
    int descriptor() const override { return image_ ? image_->descriptor() : -1; }
    // The program goes on, and the child may use processors.
    void let_child_go() { image_->child().let_go(); }
    // Has the child ended, or does it have to (memory runs short)?
    bool child_done() override;
    // How long this rank was being captured once it had met the others, until the program could go on; and
    // how long it wrote then, once it has concluded.
    uint64_t suspend_ns() const { return suspend_ns_; }
    uint64_t save_ns() const { return save_ns_; }
    // The image is complete and remembered, or removed; the answer for the root.
    wire::Saved conclude() override;

  private:
    void begin_stream();
    void prepare_together();
    void forget_roster();

    const SavedRank& who_;
    const wire::Save order_;
    const bool alone_;
    LastImage& last_;
    const uint64_t began_;  // ns
    uint64_t suspend_ns_ = 0, save_ns_ = 0, writes_since_ = 0;
    image::SaveOptions options_;
    std::unique_ptr<split::shared::Roster> roster_;  // while ranks capture
    std::optional<CapturedImage> captured_;          // from capture() to write()
    std::unique_ptr<PendingImage> image_;            // from write() to conclude()
    std::vector<Range> covered_;                     // by it
    LastImage none_;                                 // of a copy's image: it stands for itself
    bool rests_ = false;
    bool whole_ = false;  // the image, as far as it is this rank's to write
    int stream_ = -1;
    std::string no_copy_;
};

}  // namespace fermata::lower
