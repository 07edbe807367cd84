// MPI_Request_get_status and its kin: what a test would say, while the request stays.
#include "front/requests/completion.h"

namespace fermata::front {

extern "C" {

int fm_Request_get_status(mpi::Request request, int* flag, Status* status) {
    Call call("MPI_Request_get_status");
    RequestObject* r = find_request(request);
    if (r == nullptr && request != FM_REQUEST_NULL) return call.finish(FM_ERR_REQUEST);
    if (ignored(r)) {
        *flag = 1;
        empty_status(status);
        return 0;
    }
    if (logged::on()) logged::refuse("MPI_Request_get_status");
    before_test(call);
    *flag = test_one(call, r) ? 1 : 0;
    if (*flag == 0) {
        poll_failed(call, &r, 1);
        return 0;
    }
    poll_succeeded(call);
    int rc = 0;
    if (r->what == What::generalized && r->generalized->query != nullptr)
        rc = r->generalized->query(r->generalized->query_fn, r->generalized->extra_state, &r->status);
    if (status != nullptr) *status = r->status;
    return call.finish(rc);
}

int fm_Request_get_status_all(int count, const mpi::Request* requests, int* flag, Status* statuses) {
    *flag = 1;
    for (int i = 0; i < count; i++) {
        int one = 0;
        int rc = fm_Request_get_status(requests[i], &one, statuses != nullptr ? &statuses[i] : nullptr);
        if (rc != 0) return rc;
        if (one == 0) *flag = 0;
    }
    return 0;
}

int fm_Request_get_status_any(int count, const mpi::Request* requests, int* index, int* flag,
                              Status* status) {
    bool active = false;
    for (int i = 0; i < count; i++) {
        if (ignored(find_request(requests[i]))) continue;
        active = true;
        int rc = fm_Request_get_status(requests[i], flag, status);
        if (rc != 0 || *flag != 0) {
            *index = i;
            return rc;
        }
    }
    *index = FM_UNDEFINED;
    *flag = active ? 0 : 1;
    if (!active) empty_status(status);
    return 0;
}

int fm_Request_get_status_some(int count, const mpi::Request* requests, int* outcount, int* indices,
                               Status* statuses) {
    bool active = false;
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (ignored(find_request(requests[i]))) continue;
        active = true;
        int flag = 0;
        int rc = fm_Request_get_status(requests[i], &flag, statuses != nullptr ? &statuses[found] : nullptr);
        if (rc != 0) return rc;
        if (flag != 0) indices[found++] = i;
    }
    *outcount = active ? found : FM_UNDEFINED;
    return 0;
}

}  // extern "C"

}  // namespace fermata::front
