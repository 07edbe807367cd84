// Data representations of the program. The libraries (ROMIO in both) convert nothing: they take a name
// without conversion functions, refuse it twice, and refuse it in a view; so nothing of it is theirs.
#include "front/objects/api.h"
#include "front/objects/object.h"

namespace fermata::front {
namespace {

SpinLock names_lock;
Vec<Text>* names;

bool add(const char* name) {
    SpinGuard guard(names_lock);
    if (names == nullptr) names = fm_new<Vec<Text>>();
    for (const Text& known : *names)
        if (known == name) return false;
    names->push_back(Text(name));
    return true;
}

}  // namespace

extern "C" int fm_Register_datarep(const char* datarep, void* read, DatarepConversionAdapter, void* write,
                                   DatarepConversionAdapter, void*, DatarepExtentAdapter, void*) {
    Call call("MPI_Register_datarep");
    if (datarep == nullptr || *datarep == 0) return call.finish(FM_FILE_NULL, FM_ERR_ARG);
    if (read != nullptr || write != nullptr) return call.finish(FM_FILE_NULL, FM_ERR_CONVERSION);
    return call.finish(FM_FILE_NULL, add(datarep) ? 0 : FM_ERR_DUP_DATAREP);
}

}  // namespace fermata::front
