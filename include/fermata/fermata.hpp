// Application-level checkpoints for C++17: fermata.h with exceptions, types by themselves, and a handle that
// closes itself (docs/api.md).
//
//     fermata::Checkpoints state(MPI_COMM_WORLD, "state", "keep=3,interval=10m");
//     state.protect_global("time", time);
//     state.protect_array("psi", psi.data(), {nx, ny}, {first, 0}, {mine, ny});
//     int64_t step = state.restore().value_or(0);
//     for (; step < steps; ++step) {
//         if (state.should_checkpoint()) state.save(step);
//         …
//     }
#ifndef FERMATA_FERMATA_HPP
#define FERMATA_FERMATA_HPP

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fermata.h"

namespace fermata {

// An answer of a function of fermata.h other than FERMATA_OK.
class CheckpointError : public std::runtime_error {
  public:
    CheckpointError(fermata_code code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
    fermata_code code() const noexcept { return code_; }

  private:
    fermata_code code_;
};

template <class T>
constexpr fermata_type type_of() {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, float>)
        return FERMATA_FLOAT;
    else if constexpr (std::is_same_v<U, double>)
        return FERMATA_DOUBLE;
    else if constexpr (std::is_same_v<U, std::complex<float>>)
        return FERMATA_COMPLEX_FLOAT;
    else if constexpr (std::is_same_v<U, std::complex<double>>)
        return FERMATA_COMPLEX_DOUBLE;
    else if constexpr (std::is_integral_v<U> && std::is_signed_v<U>)
        return sizeof(U) == 1 ? FERMATA_INT8 : sizeof(U) == 2 ? FERMATA_INT16 : sizeof(U) == 4 ? FERMATA_INT32 : FERMATA_INT64;
    else if constexpr (std::is_integral_v<U> || std::is_enum_v<U>)
        return sizeof(U) == 1   ? FERMATA_UINT8
               : sizeof(U) == 2 ? FERMATA_UINT16
               : sizeof(U) == 4 ? FERMATA_UINT32
                                : FERMATA_UINT64;
    else {
        static_assert(std::is_trivially_copyable_v<U>, "protect_object() is for types that cannot be copied byte by byte");
        return FERMATA_BYTE;
    }
}

using Numbers = std::vector<int64_t>;

class Checkpoints {
  public:
    explicit Checkpoints(MPI_Comm comm, const std::string& directory = "fermata-state", const std::string& options = "") {
        fermata_handle* handle = nullptr;
        int code = fermata_open(&handle, comm, directory.c_str(), options.c_str());
        handle_.reset(handle);
        check(code);
    }

    template <class T>
    void protect_global(const std::string& name, T& value) {
        check(fermata_protect_global(get(), name.c_str(), &value, type_of<T>(), count_of<T>(1)));
    }
    template <class T>
    void protect_local(const std::string& name, T* data, int64_t count) {
        check(fermata_protect_local(get(), name.c_str(), data, type_of<T>(), count_of<T>(count)));
    }
    // Throws std::invalid_argument when the lists are of different lengths.
    template <class T>
    void protect_array(const std::string& name, T* data, const Numbers& global, const Numbers& offset,
                       const Numbers& extent, const Numbers& stride = {}) {
        static_assert(type_of<T>() != FERMATA_BYTE || sizeof(T) == 1, "an array is of numbers");
        if (offset.size() != global.size() || extent.size() != global.size() || (!stride.empty() && stride.size() != global.size()))
            throw std::invalid_argument(name + ": global, offset, extent and stride have one number per dimension");
        check(fermata_protect_array(get(), name.c_str(), data, type_of<T>(), static_cast<int>(global.size()),
                                    global.data(), offset.data(), extent.data(), stride.empty() ? nullptr : stride.data()));
    }
    // A vector of each rank, which takes its length from the image.
    template <class T>
    void protect_vector(const std::string& name, std::vector<T>& vector) {
        static_assert(std::is_trivially_copyable_v<T>);
        protect_object(
            name, [&vector] { return static_cast<int64_t>(vector.size() * sizeof(T)); },
            [&vector](void* to, int64_t size) { std::memcpy(to, vector.data(), static_cast<size_t>(size)); },
            [&vector](const void* from, int64_t size) {
                vector.resize(static_cast<size_t>(size) / sizeof(T));
                std::memcpy(vector.data(), from, static_cast<size_t>(size));
            });
    }
    // Anything: how large it is, into bytes, and back. The functions may throw: the call fails then.
    void protect_object(const std::string& name, std::function<int64_t()> size, std::function<void(void*, int64_t)> pack,
                        std::function<void(const void*, int64_t)> unpack) {
        auto hooks = std::make_unique<Hooks>(Hooks{std::move(size), std::move(pack), std::move(unpack)});
        check(fermata_protect_object(
            get(), name.c_str(), hooks.get(),
            [](void* object) -> int64_t {
                try {
                    return static_cast<Hooks*>(object)->size();
                } catch (...) {
                    return -1;
                }
            },
            [](void* object, void* to, int64_t n) {
                return caught([&] { static_cast<Hooks*>(object)->pack(to, n); });
            },
            [](void* object, const void* from, int64_t n) {
                return caught([&] { static_cast<Hooks*>(object)->unpack(from, n); });
            }));
        hooks_[name] = std::move(hooks);
    }
    void forget(const std::string& name) {
        check(fermata_forget(get(), name.c_str()));
        hooks_.erase(name);
    }

    void save(int64_t step) { check(fermata_save(get(), step)); }
    // True: the newest save is on storage.
    bool durable() {
        int durable = 0;
        check(fermata_test(get(), &durable));
        return durable != 0;
    }
    void wait() { check(fermata_wait(get())); }
    // The step that was saved; none: there is nothing to restore.
    std::optional<int64_t> restore() {
        int64_t step = 0;
        int code = fermata_restore(get(), &step);
        if (code == FERMATA_NOTHING) return std::nullopt;
        check(code);
        return step;
    }
    bool should_checkpoint() { return fermata_should_checkpoint(get()) != 0; }
    bool should_exit() { return fermata_should_exit(get()) != 0; }

    // Tells of a save that failed, which the destructor cannot.
    void close() {
        if (int code = fermata_close(handle_.release())) throw CheckpointError(static_cast<fermata_code>(code), fermata_message(nullptr));
    }
    fermata_handle* get() const { return handle_.get(); }

  private:
    struct Hooks {
        std::function<int64_t()> size;
        std::function<void(void*, int64_t)> pack;
        std::function<void(const void*, int64_t)> unpack;
    };
    struct Close {
        void operator()(fermata_handle* handle) const { fermata_close(handle); }
    };
    template <class T>
    static constexpr int64_t count_of(int64_t count) {
        return type_of<T>() == FERMATA_BYTE ? count * static_cast<int64_t>(sizeof(T)) : count;
    }
    template <class What>
    static int caught(What what) noexcept {
        try {
            what();
            return 0;
        } catch (...) {
            return 1;
        }
    }
    void check(int code) const {
        if (code != FERMATA_OK) throw CheckpointError(static_cast<fermata_code>(code), fermata_message(get()));
    }

    std::map<std::string, std::unique_ptr<Hooks>> hooks_;  // outlives the handle
    std::unique_ptr<fermata_handle, Close> handle_;
};

}  // namespace fermata

#endif
