#include "noded/one_output.h"

#include <algorithm>
#include <utility>

namespace fermata::noded {
namespace {

constexpr size_t kPiece = 1 << 20;

// Is what the spool begins with the same, as far as there is any?
bool agree(const Spool& spool, std::string_view bytes) {
    for (size_t at = 0; at < bytes.size() && at < spool.size();) {
        const std::string piece = spool.read(at, std::min(kPiece, bytes.size() - at));
        if (bytes.substr(at, piece.size()) != piece) return false;
        at += piece.size();
    }
    return true;
}

}  // namespace

void OneOutput::copy_is_made() {
    copied_ = true;
    at_copy_ = written_;
    said_.clear();
}

void OneOutput::copy_is_gone() {
    copied_ = false;
    said_.clear();
}

std::string_view OneOutput::wrote(std::string_view bytes) {
    const size_t again = std::min<uint64_t>(expected_.size(), bytes.size());
    parted_ = parted_ || !agree(expected_, bytes.substr(0, again));
    if (again > 0) expected_.drop_oldest(again);
    if (copied_) said_.append(bytes);
    written_ += bytes.size();
    return without_unseen(bytes.substr(again));
}

std::string_view OneOutput::without_unseen(std::string_view bytes) {
    const uint64_t again = std::min<uint64_t>(unseen_, bytes.size());
    unseen_ -= again;
    return bytes.substr(again);
}

std::string OneOutput::copy_goes_on(const std::string& copys) {
    Spool gone = std::move(said_);  // on its way since the copy was made
    for (uint64_t at = 0; at < expected_.size();) {
        const std::string piece = expected_.read(at, kPiece);
        gone.append(piece);
        at += piece.size();
    }
    const size_t both = std::min<uint64_t>(gone.size(), copys.size());
    parted_ = parted_ || !agree(gone, copys);
    gone.drop_oldest(both);
    expected_ = std::move(gone);
    written_ = at_copy_ + copys.size();
    copy_is_gone();
    return std::string(without_unseen(std::string_view(copys).substr(both)));
}

std::string OneOutput::copy_goes_on_after(uint64_t written, const std::string& copys) {
    unseen_ = written;
    written_ = copys.size();
    return std::string(without_unseen(copys));
}

}  // namespace fermata::noded
