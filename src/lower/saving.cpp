#include "lower/saving.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "lower/services.h"
#include "lower/shared_ranks.h"
#include "lower/stay.h"
#include "split/devices/kinds.h"
#include "split/shared/registry.h"

namespace fermata::lower {

Saving::Saving(const SavedRank& who, const wire::Save& order, LastImage& last, bool alone)
    : Together(order.epoch, who.rank),
      who_(who),
      order_(order),
      alone_(alone),
      last_(last),
      began_(monotonic_ns()) {
    try {
        options_ = image::SaveOptions::from_text(order.options);
        if (!alone_) meet();
    } catch (const std::exception& error) {
        note(error.what());
    }
}

// A stream without an image is one that nobody follows.
Saving::~Saving() {
    if (stream_ >= 0 && !whole_) the_upper()->log_copy_gone();
}

// From here on what the rank is told is written down for the copy, which its image becomes.
void Saving::begin_stream() {
    const auto own = static_cast<int32_t>(who_.rank.number());
    rests_ = std::none_of(order_.copies.begin(), order_.copies.end(), [own](const wire::Run& run) {
        return own >= run.first && own - run.first < static_cast<int64_t>(run.count);
    });
    if (rests_) return;
    no_copy_ = why_no_copy_elsewhere();
    if (no_copy_.empty()) {
        stream_ = make_stream_memory();
        if (const char* why = the_upper()->log_begin_copy_elsewhere(stream_)) no_copy_ = why;
    }
    rests_ = !no_copy_.empty();
    if (rests_) stream_ = -1;
}

void Saving::prepare_together() {
    if (alone_) {
        roster_ = roster_of(order_.uses, who_.rank);
        return split::shared::set_roster(roster_.get());
    }
    int code = the_upper()->before_save();
    roster_ = exchange_uses(the_bridge()->private_world, who_.rank, static_cast<int>(who_.size));
    split::shared::set_roster(roster_.get());
    if (code)
        fail("files or windows cannot be saved at this moment (MPI error class {}, e.g. an open epoch)",
             code);
}

void Saving::forget_roster() {
    split::shared::set_roster(nullptr);
    roster_.reset();
}

void Saving::help() {
    try {
        prepare_together();
    } catch (const std::exception&) {  // nothing is saved
    }
    forget_roster();
}

void Saving::capture() {
    try {
        if (!order_.copies.empty()) begin_stream();
        if (rests_) return;
        prepare_together();
        const uint64_t alone_since = monotonic_ns();
        image::Identity identity{who_.job, order_.generation.number(), who_.rank, who_.size};
        const auto lowest = Rank::among(order_.lowest, who_.size);
        if (!lowest || *lowest > who_.rank) fail("the node daemon has not said which ranks are on this node");
        captured_ = capture_image({order_.directory, identity, *lowest, who_.program, options_, who_.key,
                                   who_.files, who_.node, who_.cpu},
                                  order_.copies.empty() ? last_ : none_);
        suspend_ns_ = monotonic_ns() - alone_since;
    } catch (const std::exception& error) {
        note(error.what());
    }
    forget_roster();
}

std::vector<std::string> Saving::write(std::optional<uint64_t> begin) {
    always(captured_ && captured_->image, "an image that is written before it is captured");
    CapturedImage captured = std::move(*captured_);
    captured_.reset();
    writes_since_ = monotonic_ns();
    saved_.suspend_us = (writes_since_ - began_) / 1000;
    try {
        if (begin) captured.image->writer().place(*begin);
        write_image(captured);
        image_ = std::move(captured.image);
        covered_ = std::move(captured.covered);
        if (options_.forked) {
            const uint64_t forked = monotonic_ns();
            suspend_ns_ += forked - std::exchange(writes_since_, forked);
        }
        return std::move(captured.warnings);
    } catch (const std::exception& error) {
        note(error.what());
        return {};
    }
}

bool Saving::child_done() {
    try {
        always(image_ != nullptr, "a child that writes no image");
        if (image_->done()) return true;
        image_->watch_memory();
        return false;
    } catch (const std::exception& error) {
        note(error.what());
        return true;
    }
}

wire::Saved Saving::conclude() {
    if (rests_) saved_.checksum = image::Checksum{}.hex();
    try {
        split::devices::restore_all();
        if (image_ && !failed()) {
            image::Summary summary = image_->conclude();
            if (order_.medium == Medium::local) files::Folder::at(order_.directory).sync();
            saved_.bytes = summary.bytes;
            saved_.checksum = summary.checksum.hex();
            image::Content content = image_->writer().content();
            always(!content.references.empty(), "an image that does not even refer to itself");
            uint32_t own = content.references.back().generation;
            always(own == order_.generation.number(), "an image of another generation than was asked for");
            for (const image::Reference& reference : content.references)
                if (reference.generation != own) saved_.needs.push_back(Generation(reference.generation));
            if (!covered_.empty() && order_.copies.empty())
                last_.remember(std::move(content), std::move(covered_));
        }
    } catch (const std::exception& error) {
        note(error.what());
    }
    image_.reset();
    whole_ = !failed();
    if (writes_since_ > 0) save_ns_ = monotonic_ns() - writes_since_;
    return std::move(saved_);
}

}  // namespace fermata::lower
