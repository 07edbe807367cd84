module callbacks
  use mpi_f08
  implicit none
  integer(MPI_ADDRESS_KIND) :: deleted = 0
contains
  subroutine addop(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, (/ len /))
    call c_f_pointer(inoutvec, b, (/ len /))
    if (datatype == MPI_INTEGER) b = b + a + 100
  end subroutine
  subroutine comm_copy(comm, keyval, extra, vin, vout, flag, ierror)
    type(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, vin, vout
    logical :: flag
    vout = vin + extra
    if (comm /= MPI_COMM_WORLD) vout = -1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine comm_delete(comm, keyval, val, extra, ierror)
    type(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: val, extra
    deleted = deleted + val
    ierror = MPI_SUCCESS
  end subroutine
  subroutine type_copy(datatype, keyval, extra, vin, vout, flag, ierror)
    type(MPI_Datatype) :: datatype
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, vin, vout
    logical :: flag
    vout = vin - extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine type_delete(datatype, keyval, val, extra, ierror)
    type(MPI_Datatype) :: datatype
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: val, extra
    deleted = deleted + val
    ierror = MPI_SUCCESS
  end subroutine
  subroutine win_copy(win, keyval, extra, vin, vout, flag, ierror)
    type(MPI_Win) :: win
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, vin, vout
    logical :: flag
    flag = .false.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine win_delete(win, keyval, val, extra, ierror)
    type(MPI_Win) :: win
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: val, extra
    deleted = deleted + val
    ierror = MPI_SUCCESS
  end subroutine
  subroutine request_query(extra, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    type(MPI_Status) :: status
    integer :: ierror
    extra = extra * 10
    call MPI_Status_set_elements(status, MPI_INTEGER, 3)
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_TAG = 77
    ierror = MPI_SUCCESS
  end subroutine
  subroutine request_free(extra, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    extra = extra + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine request_cancel(extra, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    if (.not. complete) extra = extra + 5
    ierror = MPI_SUCCESS
  end subroutine
end module
program f08
  use mpi_f08
  use callbacks
  implicit none
  integer :: rank, nproc, peer, n, bad, total, ierr, k, i
  integer, asynchronous :: a(8), b(8)
  integer :: idx(3)
  type(MPI_Status) :: st, sts(4)
  type(MPI_Request) :: req(3)
  type(MPI_Comm) :: comm, cart
  type(MPI_Datatype) :: t
  type(MPI_Op) :: op
  type(MPI_Info) :: info
  type(MPI_File) :: fh
  type(MPI_Group) :: g, wg
  logical :: flag, periods(1)
  character(len=64) :: str
  character(len=MPI_MAX_OBJECT_NAME) :: name
  integer(MPI_ADDRESS_KIND) :: lb, extent
  integer(MPI_ADDRESS_KIND), asynchronous :: val
  integer(MPI_ADDRESS_KIND), parameter :: thousand = 1000
  type(MPI_Win) :: win
  integer(MPI_OFFSET_KIND) :: off
  bad = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nproc, ierr)
  call check(nproc == 2 .and. ierr == MPI_SUCCESS, 1)
  peer = 1 - rank
  a = rank + 1; b = -1
  call MPI_Irecv(b, 8, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, req(1))
  call MPI_Isend(a, 4, MPI_INTEGER, peer, 17, MPI_COMM_WORLD, req(2))
  call MPI_Waitall(2, req, sts)
  call MPI_F_sync_reg(b)
  call check(sts(1)%MPI_SOURCE == peer .and. sts(1)%MPI_TAG == 17 .and. b(4) == peer + 1 .and. b(5) == -1, 2)
  call MPI_Get_count(sts(1), MPI_INTEGER, n)
  call check(n == 4 .and. req(1) == MPI_REQUEST_NULL, 3)
  call MPI_Sendrecv(a, 2, MPI_INTEGER, peer, 3, b, 8, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Sendrecv(a, 2, MPI_INTEGER, peer, 3, b, 8, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, st)
  call MPI_Get_elements(st, MPI_INTEGER, n)
  call check(n == 2, 4)
  do i = 1, 3
     call MPI_Irecv(b(i), 1, MPI_INTEGER, peer, 20 + i, MPI_COMM_WORLD, req(i))
  end do
  call MPI_Send(a, 1, MPI_INTEGER, peer, 22, MPI_COMM_WORLD)
  call MPI_Waitany(3, req, n, st)
  call check(n == 2 .and. st%MPI_TAG == 22, 5)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Send(a, 1, MPI_INTEGER, peer, 21, MPI_COMM_WORLD)
  call MPI_Send(a, 1, MPI_INTEGER, peer, 23, MPI_COMM_WORLD)
  k = 0
  do while (k < 2)
     call MPI_Testsome(3, req, n, idx, sts)
     do i = 1, n
        call check(sts(i)%MPI_TAG == 20 + idx(i), 6)
     end do
     if (n > 0) k = k + n
  end do
  call MPI_Testall(3, req, flag, MPI_STATUSES_IGNORE)
  call check(flag, 7)
  n = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(n == 3, 8)
  a(1:2) = (/ 2, 3 /)
  call MPI_Op_create(addop, .true., op)
  call MPI_Allreduce(a, b, 2, MPI_INTEGER, op, MPI_COMM_WORLD)
  call check(b(1) == 104 .and. b(2) == 106, 9)
  call MPI_Op_free(op)
  call MPI_Ibcast(n, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, req(1))
  call MPI_Wait(req(1), MPI_STATUS_IGNORE)
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, t)
  call MPI_Type_get_extent(t, lb, extent)
  call check(lb == 0 .and. extent == 12, 10)
  call MPI_Type_commit(t)
  call MPI_Type_free(t)
  call check(t == MPI_DATATYPE_NULL, 11)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, comm)
  call MPI_Comm_set_name(comm, 'my communicator  ')
  call MPI_Comm_get_name(comm, name, n)
  call check(n == 15 .and. name == 'my communicator', 12)
  call MPI_Comm_group(comm, g)
  call MPI_Comm_group(MPI_COMM_WORLD, wg)
  a(1:2) = (/ 0, 1 /)
  call MPI_Group_translate_ranks(g, 2, a, wg, b)
  call check(b(1) == 1 .and. b(2) == 0, 13)
  call MPI_Group_free(g)
  call MPI_Group_free(wg)
  call MPI_Comm_free(comm)
  call check(comm == MPI_COMM_NULL, 14)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, (/ 2 /), (/ .true. /), .false., cart)
  call MPI_Cart_get(cart, 1, idx, periods, a)
  call check(periods(1) .and. idx(1) == 2, 15)
  call MPI_Comm_free(cart)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'key', 'value')
  str = 'zzzzzzzzzzzzzzzzzzz'
  call MPI_Info_get(info, 'key', 64, str, flag)
  call check(flag .and. str == 'value', 16)
  call MPI_Info_free(info)
  call MPI_File_open(MPI_COMM_WORLD, 'f08-test.data', MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
       MPI_INFO_NULL, fh, ierr)
  call check(ierr == 0, 17)
  off = rank * 4
  call MPI_File_write_at_all(fh, off, rank, 1, MPI_INTEGER, st)
  call MPI_Get_count(st, MPI_INTEGER, n)
  call check(n == 1, 18)
  call MPI_File_close(fh)
  call MPI_Comm_create_keyval(comm_copy, comm_delete, k, thousand)
  val = 7
  call MPI_Comm_set_attr(MPI_COMM_WORLD, k, val)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_get_attr(comm, k, val, flag)
  call check(flag .and. val == 1007, 20)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, k)
  call MPI_Comm_free(comm)
  call check(deleted == 1014, 21)
  call MPI_Comm_free_keyval(k)
  call MPI_Type_create_keyval(type_copy, type_delete, k, thousand)
  call MPI_Type_dup(MPI_INTEGER, t)
  val = 3
  call MPI_Type_set_attr(t, k, val)
  block
    type(MPI_Datatype) :: twin
    call MPI_Type_dup(t, twin)
    call MPI_Type_get_attr(twin, k, val, flag)
    call check(flag .and. val == -997, 22)
    call MPI_Type_free(twin)
  end block
  call MPI_Type_free(t)
  call MPI_Type_free_keyval(k)
  call check(deleted == 20, 23)
  call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call MPI_Win_create_keyval(win_copy, win_delete, k, thousand)
  val = 11
  call MPI_Win_set_attr(win, k, val)
  val = 0
  call MPI_Win_get_attr(win, k, val, flag)
  call check(flag .and. val == 11, 24)
  call MPI_Win_free(win)
  call MPI_Win_free_keyval(k)
  call check(deleted == 31, 25)
  val = 4
  call MPI_Grequest_start(request_query, request_free, request_cancel, val, req(1))
  call MPI_Cancel(req(1))
  call MPI_Grequest_complete(req(1))
  call MPI_Wait(req(1), st)
  call MPI_F_sync_reg(val)
  call MPI_Get_elements(st, MPI_INTEGER, n)
  call check(n == 3 .and. st%MPI_TAG == 77 .and. val == 91, 26)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, (/ peer /), MPI_UNWEIGHTED, 1, (/ peer /), MPI_UNWEIGHTED, &
       MPI_INFO_NULL, .false., comm)
  call MPI_Dist_graph_neighbors_count(comm, n, k, flag)
  call check(n == 1 .and. k == 1 .and. .not. flag, 27)
  call MPI_Comm_free(comm)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Send(a, 1, MPI_INTEGER, 99, 0, MPI_COMM_WORLD, ierr)
  call MPI_Error_class(ierr, n)
  call check(n == MPI_ERR_RANK, 19)
  call MPI_Reduce(bad, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  if (rank == 0) print '(a,i0)', 'f08 checks failed: ', total
  call MPI_Finalize()
contains
  subroutine check(ok, number)
    logical, intent(in) :: ok
    integer, intent(in) :: number
    if (.not. ok) then
       bad = bad + 1
       print '(a,i0,a,i0)', 'check ', number, ' failed on rank ', rank
    end if
  end subroutine
end program
