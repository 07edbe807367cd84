// This header reads the part "process" of an image, its facts about the process (docs/formats/image.md).
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/cbor.h"
#include "base/error.h"
#include "image/image.h"

namespace fermata::level {

inline bool has_part(const image::Reader& reader, const char* name) {
    return std::any_of(reader.blobs().begin(), reader.blobs().end(),
                       [&](const image::Blob& blob) { return blob.name == name; });
}

// Throws Error when that is damaged, or not as `use` wants it.
template <class Use>
auto with_process_state(const image::Reader& reader, Use use) {
    const auto& bytes = reader.blob("process");
    if (const char* fault = cbor_fault(bytes.data(), bytes.size()))
        fail("{} is damaged: its process state: {}", reader.file_of({}), fault);
    try {
        const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
        const nlohmann::json state = nlohmann::json::from_cbor(begin, begin + bytes.size());
        return use(state);
    } catch (const nlohmann::json::exception& error) {
        fail("{} is damaged: its process state: {}", reader.file_of({}), error.what());
    }
}

// The program's files that a restart puts back; older images have none.
inline nlohmann::json kept_of(const nlohmann::json& state) {
    return state.contains("files") ? state.at("files") : nlohmann::json::array();
}

}  // namespace fermata::level
