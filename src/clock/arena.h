// Memory for the rank side: chunks from a callback (raw mmap, upper half, zeroed), handed out in powers of
// two with a free list per power. No libc, no TLS: the agent allocates here too. Callers hold the clock's
// lock.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace fermata::clock {

struct ChunkSource {
    void* self;
    // `bytes` of zeroed memory, 64-byte aligned, that is part of the image and never given back. Never null:
    // a source that is out of memory ends the job with its own message.
    void* (*chunk)(void* self, size_t bytes);
};

class Arena {
  public:
    explicit Arena(ChunkSource source) : source_(source) {}

    // Zeroed, 64-byte aligned.
    void* take(size_t bytes) {
        int power = power_of(bytes);
        size_t size = size_t{1} << power;
        if (free_[power]) {
            Free* block = free_[power];
            free_[power] = block->next;
            memset(static_cast<void*>(block), 0, size);
            return block;
        }
        if (size >= kChunk / 4) return source_.chunk(source_.self, size);  // large: a mapping of its own
        if (left_ < size) {
            next_ = static_cast<char*>(source_.chunk(source_.self, kChunk));
            left_ = kChunk;
        }
        void* block = next_;
        next_ += size;
        left_ -= size;
        return block;
    }
    void give(void* block, size_t bytes) {
        if (!block) return;
        int power = power_of(bytes);
        auto* head = static_cast<Free*>(block);
        head->next = free_[power];
        free_[power] = head;
    }
    template <class T, class... Args>
    T* make(Args&&... args) {
        static_assert(alignof(T) <= 64);
        return new (take(sizeof(T))) T(std::forward<Args>(args)...);
    }
    template <class T>
    void drop(T* object) {
        give(object, sizeof(T));
    }

  private:
    struct Free {
        Free* next;
    };
    static constexpr size_t kChunk = size_t{256} * 1024;
    static int power_of(size_t bytes) {
        return bytes <= 64 ? 6 : static_cast<int>(std::bit_width(bytes - 1));
    }

    ChunkSource source_;
    char* next_ = nullptr;
    size_t left_ = 0;
    Free* free_[48] = {};
};

// A growing array in an arena, for plain values.
template <class T>
class Array {
  public:
    static_assert(std::is_trivially_copyable_v<T>);
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    void clear() { size_ = 0; }
    void push(Arena& arena, const T& value) {
        if (size_ == capacity_) grow(arena);
        data_[size_++] = value;
    }
    void remove_unordered(size_t i) { data_[i] = data_[--size_]; }

  private:
    void grow(Arena& arena) {
        size_t bigger = capacity_ ? capacity_ * 2 : 16;
        T* data = static_cast<T*>(arena.take(bigger * sizeof(T)));
        if (size_) memcpy(static_cast<void*>(data), data_, size_ * sizeof(T));
        arena.give(data_, capacity_ * sizeof(T));
        data_ = data;
        capacity_ = bigger;
    }
    T* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

}  // namespace fermata::clock
