! User-level failure mitigation as Fortran programs of Open MPI 5 call it: see failures.c.
subroutine failures() bind(c)
    use mpi
    implicit none
    integer :: rank, size, ierr, flag, shrunk, group, number, acked, request, total, class
    logical :: revoked
    external :: MPIX_Comm_agree, MPIX_Comm_iagree, MPIX_Comm_is_revoked, MPIX_Comm_shrink, MPIX_Comm_get_failed
    external :: MPIX_Comm_failure_ack, MPIX_Comm_ack_failed, MPIX_Comm_revoke

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    flag = not(ishft(1, rank))
    call MPIX_Comm_agree(MPI_COMM_WORLD, flag, ierr)
    call expect(ierr == MPI_SUCCESS .and. flag == not(2**size - 1), 'agree')
    flag = not(ishft(1, rank))
    call MPIX_Comm_iagree(MPI_COMM_WORLD, flag, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call expect(flag == not(2**size - 1), 'iagree')
    revoked = .true.
    call MPIX_Comm_is_revoked(MPI_COMM_WORLD, revoked, ierr)
    call expect(.not. revoked, 'is_revoked')
    call MPIX_Comm_shrink(MPI_COMM_WORLD, shrunk, ierr)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, shrunk, ierr)
    call expect(total == size * (size - 1) / 2, 'shrink')
    call MPIX_Comm_failure_ack(shrunk, ierr)
    call MPIX_Comm_get_failed(shrunk, group, ierr)
    call MPI_Group_size(group, number, ierr)
    call MPIX_Comm_ack_failed(shrunk, size, acked, ierr)
    call expect(number == 0 .and. acked == 0, 'failed')
    call MPI_Comm_set_errhandler(shrunk, MPI_ERRORS_RETURN, ierr)
    call MPIX_Comm_revoke(shrunk, ierr)
    call MPI_Error_class(ierr, class, ierr)
    call expect(class == MPI_ERR_UNSUPPORTED_OPERATION, 'revoke')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(a)', 'failures: right in Fortran'
    call MPI_Finalize(ierr)
contains
    subroutine expect(right, what)
        logical, intent(in) :: right
        character(*), intent(in) :: what
        integer :: error
        if (right) return
        print '(3a)', 'not right: ', what, ' of Fortran'
        call MPI_Abort(MPI_COMM_WORLD, 9, error)
    end subroutine
end subroutine
