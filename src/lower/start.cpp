#include "lower/start.h"

#include <unistd.h>

#include "base/error.h"
#include "lower/binding/binding.h"
#include "split/alloc/shared_names.h"
#include "split/fds/descriptors.h"
#include "tree/shared_names.h"

namespace fermata::lower {

image::KeyPointer image_key(const tree::AgentConfig& config) {
    image::KeyPointer key = image::Key::from_file_or_none(config.image_key);
    if (key && key->id().hex() != config.image_key_id)
        fail("the key file {} on {} is another one than where the job was started", config.image_key,
             config.node);
    return key;
}

void note_shared_names(const tree::AgentConfig& config) {
    split::note_shared_names_in((config.node_dir() + "/" + tree::name_of_shared_names(::getpid())).c_str());
}

MpiFacts bring_up_mpi(ThreadNeed need) {
    MpiFacts facts = start_mpi(need);
    split::end_descriptors();
    if (facts.crowded) g_yield = 64;
    return facts;
}

}  // namespace fermata::lower
