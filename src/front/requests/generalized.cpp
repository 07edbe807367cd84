// Generalized requests of the application.
#include "front/requests/completion.h"

namespace fermata::front {

extern "C" {

int fm_Grequest_start(void* query_fn, GrequestQueryAdapter query, void* free_fn, GrequestFreeAdapter free,
                      void* cancel_fn, GrequestCancelAdapter cancel, void* extra_state,
                      mpi::Request* request) {
    Call call("MPI_Grequest_start");
    RequestObject* r = new_request(What::generalized);
    empty_status(&r->status);
    r->generalized =
        fm_new<Generalized>(Generalized{query_fn, query, free_fn, free, cancel_fn, cancel, extra_state, 0});
    *request = handle_of(r);
    return 0;
}

void fm_grequest_is_fortran(mpi::Request request, GrequestQueryAdapter query, GrequestFreeAdapter free,
                            GrequestCancelAdapter cancel) {
    Call call("MPII_Grequest_set_lang_f77");
    RequestObject* r = find_request(request);
    if (r == nullptr || r->what != What::generalized) return;
    r->generalized->query = query;
    r->generalized->free = free;
    r->generalized->cancel = cancel;
}

int fm_Grequest_complete(mpi::Request request) {
    Call call("MPI_Grequest_complete");
    RequestObject* r = find_request(request);
    if (r == nullptr || r->what != What::generalized) return call.finish(FM_ERR_REQUEST);
    __atomic_store_n(&r->generalized->done, 1, __ATOMIC_RELEASE);
    if ((r->flags & kOrphan) != 0) consume(r, nullptr, nullptr);
    return 0;
}

}  // extern "C"

}  // namespace fermata::front
