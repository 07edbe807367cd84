#include "api/ranks.h"

#include "base/error.h"
#include "image/key.h"

namespace fermata::api {

Ranks::~Ranks() {
    if (mpi_.now) mpi_.release(mpi_.now);
    if (mpi_.behind) mpi_.release(mpi_.behind);
}

void Ranks::check(int code) {
    if (code != 0) refuse(FERMATA_MPI_FAILED, "MPI answered with error {}", code);
}

void Ranks::broadcast(void* bytes, size_t size, int root) const {
    check(mpi_.bcast(mpi_.now, bytes, static_cast<int64_t>(size), root));
}

std::string Ranks::broadcast_text(const std::string& text, int root) const {
    uint64_t size = text.size();
    broadcast(size, root);
    std::string all = text;
    all.resize(size);
    broadcast(all.data(), size, root);
    return all;
}

std::vector<std::string> Ranks::gather_texts(const std::string& mine) const {
    std::vector<uint64_t> sizes = gather_all(uint64_t{mine.size()});
    std::vector<std::string> all(sizes.size());
    all[static_cast<size_t>(rank())] = mine;
    for (size_t r = 0; r < all.size(); ++r) {
        if (sizes[r] == 0) continue;
        all[r].resize(sizes[r]);
        broadcast(all[r].data(), sizes[r], static_cast<int>(r));
    }
    return all;
}

void Ranks::exchange(const void* out, size_t out_size, int to, void* in, size_t in_size, int from) const {
    check(mpi_.exchange(mpi_.now, out, static_cast<int64_t>(out_size), to, in, static_cast<int64_t>(in_size),
                        from));
}

void Ranks::agree(const Fault& mine) const {
    std::vector<int32_t> codes = gather_all(static_cast<int32_t>(mine.code));
    for (int r = 0; r < size(); ++r) {
        if (codes[static_cast<size_t>(r)] == FERMATA_OK) continue;
        std::string sentence = broadcast_text(mine.sentence, r);
        throw Fault{static_cast<fermata_code>(codes[static_cast<size_t>(r)]),
                    size() > 1 ? fmt::format("rank {}: {}", r, sentence) : sentence};
    }
}

Fault Ranks::fault_of(const std::exception& error) {
    auto* ours = dynamic_cast<const Error*>(&error);
    bool damaged = ours && ours->code() == ExitCode::damaged;
    return {damaged ? FERMATA_DAMAGED : FERMATA_STORAGE, line_of(error)};
}

void Ranks::begin_gather(const void* mine, void* all, size_t size) const {
    check(mpi_.begin_gather(mpi_.behind, mine, all, static_cast<int64_t>(size)));
}

void Ranks::begin_broadcast(void* bytes, size_t size) const {
    check(mpi_.begin_bcast(mpi_.behind, bytes, static_cast<int64_t>(size)));
}

bool Ranks::over(bool wait) const {
    int over = 0;
    check(mpi_.test(mpi_.behind, wait ? 1 : 0, &over));
    return over != 0;
}

}  // namespace fermata::api
