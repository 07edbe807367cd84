// Infos is a growing list of libpmix's named values, which owns what it holds.
#pragma once

#include <pmix_common.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace fermata::pmi::helper {

class Infos {
  public:
    Infos() = default;
    Infos(const Infos&) = delete;
    Infos& operator=(const Infos&) = delete;
    ~Infos() {
        for (pmix_info_t& info : all_) PMIX_INFO_DESTRUCT(&info);
    }

    Infos& text(const char* name, const std::string& value) { return load(name, value.c_str(), PMIX_STRING); }
    Infos& regex(const char* name, const char* value) { return load(name, value, PMIX_REGEX); }
    Infos& number(const char* name, uint32_t value) { return load(name, &value, PMIX_UINT32); }
    Infos& small(const char* name, uint16_t value) { return load(name, &value, PMIX_UINT16); }
    Infos& flag(const char* name) {
        bool yes = true;
        return load(name, &yes, PMIX_BOOL);
    }
    Infos& rank(const char* name, uint32_t value) { return load(name, &value, PMIX_PROC_RANK); }
    // The values of `inner` as one; it is empty afterwards.
    Infos& array(const char* name, Infos& inner) {
        pmix_info_t info;
        PMIX_INFO_CONSTRUCT(&info);
        std::strncpy(info.key, name, PMIX_MAX_KEYLEN);
        info.value.type = PMIX_DATA_ARRAY;
        PMIX_DATA_ARRAY_CREATE(info.value.data.darray, inner.all_.size(), PMIX_INFO);
        // Data that the values own goes over with their bytes.
        std::memcpy(info.value.data.darray->array, static_cast<void*>(inner.all_.data()),
                    inner.all_.size() * sizeof(pmix_info_t));
        inner.all_.clear();
        all_.push_back(info);
        return *this;
    }

    pmix_info_t* data() { return all_.data(); }
    size_t size() const { return all_.size(); }

  private:
    Infos& load(const char* name, const void* value, pmix_data_type_t type) {
        pmix_info_t& info = all_.emplace_back();
        PMIX_INFO_CONSTRUCT(&info);
        PMIX_INFO_LOAD(&info, name, value, type);
        return *this;
    }

    std::vector<pmix_info_t> all_;
};

}  // namespace fermata::pmi::helper
