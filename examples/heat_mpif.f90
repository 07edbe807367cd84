! One-dimensional heat equation with halo exchange: mpif.h, derived datatypes, MPI_IN_PLACE, LOGICAL arguments.
program heat
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 4000
  double precision :: u(0:n+1), v(0:n+1), total, edge(2)
  integer :: rank, nranks, left, right, step, steps, inner, rounds, i, ierr, request(4), line, dims(1), status(MPI_STATUS_SIZE)
  integer :: statuses(MPI_STATUS_SIZE, 4), pair
  logical :: periods(1), flag
  character(len=32) :: argument

  call MPI_Init(ierr)
  steps = 20
  rounds = 200
  if (command_argument_count() >= 1) then
     call get_command_argument(1, argument)
     read (argument, *) steps
  end if
  if (command_argument_count() >= 2) then
     call get_command_argument(2, argument)
     read (argument, *) rounds
  end if
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  dims(1) = nranks
  periods(1) = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, .false., line, ierr)
  call MPI_Comm_rank(line, rank, ierr)
  call MPI_Cart_shift(line, 0, 1, left, right, ierr)
  call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, pair, ierr)
  call MPI_Type_commit(pair, ierr)
  do i = 0, n + 1
     u(i) = dble(mod(i * 37 + rank * 11, 101)) / 101d0
  end do
  do step = 1, steps
     call MPI_Irecv(u(0), 1, MPI_DOUBLE_PRECISION, left, 1, line, request(1), ierr)
     call MPI_Irecv(u(n+1), 1, MPI_DOUBLE_PRECISION, right, 2, line, request(2), ierr)
     call MPI_Isend(u(n), 1, MPI_DOUBLE_PRECISION, right, 1, line, request(3), ierr)
     call MPI_Isend(u(1), 1, MPI_DOUBLE_PRECISION, left, 2, line, request(4), ierr)
     call MPI_Waitall(4, request, statuses, ierr)
     if (statuses(MPI_SOURCE, 1) /= left .or. statuses(MPI_TAG, 2) /= 2) call MPI_Abort(MPI_COMM_WORLD, 7, ierr)
     do inner = 1, rounds
        do i = 1, n
           v(i) = u(i) + 0.25d0 * (u(i-1) - 2d0 * u(i) + u(i+1))
        end do
        u(1:n) = v(1:n)
     end do
     edge = (/ u(1), u(n) /)
     call MPI_Bcast(edge, 1, pair, mod(step, nranks), line, ierr)
     u(1) = u(1) + 1d-3 * edge(2)
     total = sum(u(1:n))
     call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, line, ierr)
     flag = .false.
     call MPI_Iprobe(MPI_ANY_SOURCE, 99, line, flag, status, ierr)
     if (flag) call MPI_Abort(MPI_COMM_WORLD, 8, ierr)
     if (rank == 0) then
        print '(a,i6,1x,z16.16)', 'step', step, transfer(total, 0_8)
        flush (6)
     end if
  end do
  if (rank == 0) print '(a,f22.15)', 'heat: total ', total
  call MPI_Type_free(pair, ierr)
  call MPI_Comm_free(line, ierr)
  call MPI_Finalize(ierr)
end program heat
