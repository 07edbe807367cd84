! Application-level checkpoints for Fortran 2018 (docs/api.md). Compile this file and fermata_fortran.c with the
! program, by its MPI's mpifort and mpicc, and link -lfermata.
!
!     type(fermata_state) :: state
!     call state%open(MPI_COMM_WORLD%MPI_VAL, 'state', 'keep=3', ierr)
!     call state%protect('time', t, ierr)                                     ! the same on all ranks
!     call state%protect('psi', psi, ierr, shape=[nx, ny], first=[1, j1])     ! this rank's part of an array
!     call state%restore(step, ierr)                                          ! FERMATA_NOTHING: a first start
!     call state%save(step, ierr)
module fermata
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, error_unit
  implicit none
  private
  integer, parameter, public :: FERMATA_OK = 0, FERMATA_NOTHING = 1, FERMATA_ARGUMENT = 2, FERMATA_MISMATCH = 3, &
                                FERMATA_STORAGE = 4, FERMATA_DAMAGED = 5, FERMATA_MPI_FAILED = 6

  type, public :: fermata_state
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: open => state_open
    procedure :: protect => state_protect
    procedure :: protect_local => state_protect_local
    procedure :: forget => state_forget
    procedure :: save => state_save
    procedure :: durable => state_durable
    procedure :: wait => state_wait
    procedure :: restore => state_restore
    procedure :: should_checkpoint => state_should_checkpoint
    procedure :: should_exit => state_should_exit
    procedure :: message => state_message
    procedure :: close => state_close
  end type

  interface
    integer(c_int) function f_open(handle, comm, directory, options) bind(c, name='fermata_f_open')
      import
      type(c_ptr) :: handle
      integer(c_int), value :: comm
      character(c_char), intent(in) :: directory(*), options(*)
    end function
    integer(c_int) function f_array(handle, name, data, type, n, global, first, extent, stride) bind(c, name='fermata_f_array')
      import
      type(c_ptr), value :: handle, data, stride
      character(c_char), intent(in) :: name(*)
      integer(c_int), value :: type, n
      integer(c_int64_t), intent(in) :: global(*), first(*), extent(*)
    end function
    integer(c_int) function c_global(handle, name, data, type, count) bind(c, name='fermata_protect_global')
      import
      type(c_ptr), value :: handle, data
      character(c_char), intent(in) :: name(*)
      integer(c_int), value :: type
      integer(c_int64_t), value :: count
    end function
    integer(c_int) function c_local(handle, name, data, type, count) bind(c, name='fermata_protect_local')
      import
      type(c_ptr), value :: handle, data
      character(c_char), intent(in) :: name(*)
      integer(c_int), value :: type
      integer(c_int64_t), value :: count
    end function
    integer(c_int) function c_forget(handle, name) bind(c, name='fermata_forget')
      import
      type(c_ptr), value :: handle
      character(c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_save(handle, step) bind(c, name='fermata_save')
      import
      type(c_ptr), value :: handle
      integer(c_int64_t), value :: step
    end function
    integer(c_int) function c_test(handle, durable) bind(c, name='fermata_test')
      import
      type(c_ptr), value :: handle
      integer(c_int) :: durable
    end function
    integer(c_int) function c_wait(handle) bind(c, name='fermata_wait')
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_restore(handle, step) bind(c, name='fermata_restore')
      import
      type(c_ptr), value :: handle
      integer(c_int64_t) :: step
    end function
    integer(c_int) function c_should_checkpoint(handle) bind(c, name='fermata_should_checkpoint')
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_should_exit(handle) bind(c, name='fermata_should_exit')
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function c_close(handle) bind(c, name='fermata_close')
      import
      type(c_ptr), value :: handle
    end function
    ! Rank (0 becomes 1), extents, address and fermata_type of what a descriptor describes; not 0: it is not contiguous.
    integer(c_int) function f_describe(data, n, extent, address, type) bind(c, name='fermata_f_describe')
      import
      type(*), dimension(..), intent(in) :: data
      integer(c_int) :: n, type
      integer(c_int64_t) :: extent(*)
      type(c_ptr) :: address
    end function
    subroutine f_message(handle, text, length) bind(c, name='fermata_f_message')
      import
      type(c_ptr), value :: handle
      character(c_char) :: text(*)
      integer(c_int64_t), value :: length
    end subroutine
  end interface

contains

  function terminated(text) result(c)
    character(*), intent(in) :: text
    character(len_trim(text) + 1, c_char) :: c
    c = trim(text)//c_null_char
  end function

  ! ierr absent: an error ends the program with its sentence.
  subroutine finish(self, code, ierr)
    class(fermata_state), intent(in) :: self
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: ierr
    if (present(ierr)) then
      ierr = code
    else if (code /= FERMATA_OK) then
      write (error_unit, '(a)') 'fermata: '//trim(self%message())
      error stop 1
    end if
  end subroutine

  ! comm: the integer handle (of mpi_f08, MPI_COMM_WORLD%MPI_VAL).
  subroutine state_open(self, comm, directory, options, ierr)
    class(fermata_state), intent(inout) :: self
    integer, intent(in) :: comm
    character(*), intent(in) :: directory
    character(*), intent(in), optional :: options
    integer, intent(out), optional :: ierr
    integer(c_int) :: code
    if (present(options)) then
      code = f_open(self%handle, int(comm, c_int), terminated(directory), terminated(options))
    else
      code = f_open(self%handle, int(comm, c_int), terminated(directory), terminated(''))
    end if
    call finish(self, code, ierr)
  end subroutine

  ! Scalars and arrays of numbers, contiguous. Without shape: the same on all ranks. With shape and first (counted from 1):
  ! this rank's part, as large as data, of an array of that shape; stride: between its elements.
  subroutine state_protect(self, name, data, ierr, shape, first, stride)
    class(fermata_state), intent(in) :: self
    character(*), intent(in) :: name
    type(*), dimension(..), intent(inout), target :: data
    integer, intent(out), optional :: ierr
    integer, intent(in), optional :: shape(:), first(:), stride(:)
    integer(c_int64_t) :: global(8), begin(8), extent(8)
    integer(c_int64_t), target :: apart(8)
    type(c_ptr) :: apart_pointer
    integer(c_int) :: code
    integer(c_int) :: n, kind
    type(c_ptr) :: address
    integer :: i
    if (f_describe(data, n, extent, address, kind) /= 0) address = c_null_ptr ! refused below, with a sentence
    if (.not. present(shape)) then
      code = c_global(self%handle, terminated(name), address, kind, product(extent(1:n)))
    else
      global = 1; begin = 1; apart = 1
      do i = 1, min(size(shape), 8)
        global(i) = shape(i)
      end do
      if (present(first)) then
        do i = 1, min(size(first), 8)
          begin(i) = first(i)
        end do
      end if
      apart_pointer = c_null_ptr
      if (present(stride)) then
        do i = 1, min(size(stride), 8)
          apart(i) = stride(i)
        end do
        apart_pointer = c_loc(apart)
      end if
      if (size(shape) /= n) n = 0 ! refused below, with a sentence
      code = f_array(self%handle, terminated(name), address, kind, n, global, begin, extent, apart_pointer)
    end if
    call finish(self, code, ierr)
  end subroutine

  ! Each rank's own.
  subroutine state_protect_local(self, name, data, ierr)
    class(fermata_state), intent(in) :: self
    character(*), intent(in) :: name
    type(*), dimension(..), intent(inout), target :: data
    integer, intent(out), optional :: ierr
    integer(c_int64_t) :: extent(8)
    integer(c_int) :: n, kind
    type(c_ptr) :: address
    if (f_describe(data, n, extent, address, kind) /= 0) address = c_null_ptr
    call finish(self, c_local(self%handle, terminated(name), address, kind, product(extent(1:n))), ierr)
  end subroutine

  subroutine state_forget(self, name, ierr)
    class(fermata_state), intent(in) :: self
    character(*), intent(in) :: name
    integer, intent(out), optional :: ierr
    call finish(self, c_forget(self%handle, terminated(name)), ierr)
  end subroutine

  subroutine state_save(self, step, ierr)
    class(fermata_state), intent(in) :: self
    integer, intent(in) :: step
    integer, intent(out), optional :: ierr
    call finish(self, c_save(self%handle, int(step, c_int64_t)), ierr)
  end subroutine

  logical function state_durable(self, ierr)
    class(fermata_state), intent(in) :: self
    integer, intent(out), optional :: ierr
    integer(c_int) :: durable
    call finish(self, c_test(self%handle, durable), ierr)
    state_durable = durable /= 0
  end function

  subroutine state_wait(self, ierr)
    class(fermata_state), intent(in) :: self
    integer, intent(out), optional :: ierr
    call finish(self, c_wait(self%handle), ierr)
  end subroutine

  ! ierr is FERMATA_NOTHING at a first start; step is not touched then.
  subroutine state_restore(self, step, ierr)
    class(fermata_state), intent(in) :: self
    integer, intent(inout) :: step
    integer, intent(out) :: ierr
    integer(c_int64_t) :: found
    ierr = c_restore(self%handle, found)
    if (ierr == FERMATA_OK) step = int(found)
  end subroutine

  logical function state_should_checkpoint(self)
    class(fermata_state), intent(in) :: self
    state_should_checkpoint = c_should_checkpoint(self%handle) /= 0
  end function

  logical function state_should_exit(self)
    class(fermata_state), intent(in) :: self
    state_should_exit = c_should_exit(self%handle) /= 0
  end function

  function state_message(self) result(text)
    class(fermata_state), intent(in) :: self
    character(512) :: text
    call f_message(self%handle, text, len(text, c_int64_t))
  end function

  subroutine state_close(self, ierr)
    class(fermata_state), intent(inout) :: self
    integer, intent(out), optional :: ierr
    integer(c_int) :: code
    code = c_close(self%handle)
    self%handle = c_null_ptr
    call finish(self, code, ierr)
  end subroutine
end module
