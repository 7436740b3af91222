; A team of threads for the parallel scopes of this process, behind the names of libgomp that kernels call.
;
; A region has as many shares as the kernel asks for threads. Threads claim shares one by one: each looks for work for a
; while, then sleeps. The caller claims whatever no other thread has claimed when it is done with its own share, so that a
; thread that comes late, because other programs have its processor, delays nobody. Regions of several callers do not
; overlap: while one is running, another caller computes all of its shares itself.

; A thread's place in a region: its share, the number of shares, the region's count of common pieces, and of the loop over
; them the first, the end and the step.
%place = type { i64, i64, ptr, i64, i64, i64 }

@epoch = internal global i32 0       ; the number of the latest region; threads sleep on it
@sleepers = internal global i32 0
@claimed = internal global i64 -1    ; the region's number, then a bit for each share that is claimed or missing
@done = internal global i32 0        ; shares that are computed
@taken = internal global i64 0       ; common pieces that are taken
@function = internal global ptr null
@data = internal global ptr null
@shares = internal global i32 0
@busy = internal global i32 0        ; 1 while a region is running
@key = internal global i32 0         ; of each thread's place

declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare i64 @syscall(i64, ...)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)
$declarations

; Compute one share.
define internal void @share(ptr %place, i64 %number) {
  store i64 %number, ptr %place
  %function = load ptr, ptr @function
  %data = load ptr, ptr @data
  call void %function(ptr %data)
  %before = atomicrmw add ptr @done, i32 1 release
  ret void
}

; Claim and compute shares of the region `epoch` until none is left; `own` is preferred.
define internal void @help(i32 %epoch, i64 %own) {
entry:
  %place = alloca %place
  %key = load i32, ptr @key
  br label %next
next:
  %old = load atomic i64, ptr @claimed acquire, align 8
  %number = lshr i64 %old, 32
  %its = trunc i64 %number to i32
  %same = icmp eq i32 %its, %epoch
  %taken = and i64 %old, 4294967295
  %full = icmp eq i64 %taken, 4294967295
  %other = xor i1 %same, true
  %stop = or i1 %other, %full
  br i1 %stop, label %end, label %choose
choose:
  %free = xor i64 %taken, 4294967295
  %first = call i64 @llvm.cttz.i64(i64 %free, i1 false)
  %mine = shl i64 1, %own
  %has = and i64 %free, %mine
  %isfree = icmp ne i64 %has, 0
  %chosen = select i1 %isfree, i64 %own, i64 %first
  %bit = shl i64 1, %chosen
  %new = or i64 %old, %bit
  %pair = cmpxchg ptr @claimed, i64 %old, i64 %new acq_rel acquire
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %run, label %next
run:
  %count = load i32, ptr @shares
  %team = zext i32 %count to i64
  %p1 = getelementptr %place, ptr %place, i32 0, i32 1
  store i64 %team, ptr %p1
  %p2 = getelementptr %place, ptr %place, i32 0, i32 2
  store ptr @taken, ptr %p2
  %s = call i32 @pthread_setspecific(i32 %key, ptr %place)
  call void @share(ptr %place, i64 %chosen)
  br label %next
end:
  %r = call i32 @pthread_setspecific(i32 %key, ptr null)
  ret void
}

; All shares of a region, one after the other, in the calling thread.
define internal void @alone(ptr %function, ptr %data, i32 %shares) {
entry:
  %place = alloca %place
  %pieces = alloca i64
  store i64 0, ptr %pieces
  %key = load i32, ptr @key
  %outer = call ptr @pthread_getspecific(i32 %key)
  %team = zext i32 %shares to i64
  %p1 = getelementptr %place, ptr %place, i32 0, i32 1
  store i64 %team, ptr %p1
  %p2 = getelementptr %place, ptr %place, i32 0, i32 2
  store ptr %pieces, ptr %p2
  %s = call i32 @pthread_setspecific(i32 %key, ptr %place)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %following, %loop ]
  store i64 %k, ptr %place
  call void %function(ptr %data)
  %following = add i64 %k, 1
  %more = icmp ult i64 %following, %team
  br i1 %more, label %loop, label %end
end:
  %r = call i32 @pthread_setspecific(i32 %key, ptr %outer)
  ret void
}

define void @GOMP_parallel(ptr %function, ptr %data, i32 %wanted, i32 %flags) {
entry:
  %large = icmp ugt i32 %wanted, 32
  %most = select i1 %large, i32 32, i32 %wanted
  %none = icmp eq i32 %most, 0
  %shares = select i1 %none, i32 1, i32 %most
  %key = load i32, ptr @key
  %outer = call ptr @pthread_getspecific(i32 %key)
  %inside = icmp ne ptr %outer, null
  %single = icmp eq i32 %shares, 1
  %serial = or i1 %inside, %single
  br i1 %serial, label %one, label %enter
enter:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %pair, 1
  br i1 %got, label %begin, label %one
one:
  call void @alone(ptr %function, ptr %data, i32 %shares)
  ret void
begin:
  store ptr %function, ptr @function
  store ptr %data, ptr @data
  store i32 %shares, ptr @shares
  store atomic i64 0, ptr @taken monotonic, align 8
  store atomic i32 0, ptr @done monotonic, align 4
  %before = load atomic i32, ptr @epoch monotonic, align 4
  %epoch = add i32 %before, 1
  %number = zext i32 %epoch to i64
  %high = shl i64 %number, 32
  %width = zext i32 %shares to i64
  %ones = shl i64 4294967295, %width
  %missing = and i64 %ones, 4294967295
  %claimed = or i64 %high, %missing
  store atomic i64 %claimed, ptr @claimed release, align 8
  store atomic i32 %epoch, ptr @epoch seq_cst, align 4
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %wakes = icmp ne i32 %asleep, 0
  br i1 %wakes, label %wake, label %work
wake:
  %others = sub i32 %shares, 1
  %woken = call i64 (i64, ...) @syscall(i64 $futex, ptr @epoch, i32 129, i32 %others, ptr null, ptr null, i32 0)
  br label %work
work:
  call void @help(i32 %epoch, i64 0)
  br label %wait
wait:
  %spins = phi i32 [ $spins, %work ], [ %fewer, %pause ], [ 0, %yield ]
  %ready = load atomic i32, ptr @done acquire, align 4
  %all = icmp eq i32 %ready, %shares
  br i1 %all, label %end, label %again
again:
  %tired = icmp eq i32 %spins, 0
  br i1 %tired, label %yield, label %pause
pause:
  %fewer = sub i32 %spins, 1
  $pause
  br label %wait
yield:
  %y = call i32 @sched_yield()
  br label %wait
end:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; A thread of the team: wait for the region after the one it has seen, and help.
define internal ptr @worker(ptr %argument) {
entry:
  %own = ptrtoint ptr %argument to i64
  %present = load atomic i32, ptr @epoch acquire, align 4
  br label %look
look:
  %seen = phi i32 [ %present, %entry ], [ %latest, %found ]
  br label %try
try:
  %spins = phi i32 [ $spins, %look ], [ %fewer, %pause ], [ 0, %yield ]
  %yields = phi i32 [ $yields, %look ], [ %yields, %pause ], [ %left, %yield ]
  %now = load atomic i32, ptr @epoch acquire, align 4
  %new = icmp ne i32 %now, %seen
  br i1 %new, label %found, label %idle
idle:
  %tired = icmp eq i32 %spins, 0
  br i1 %tired, label %resting, label %pause
pause:
  %fewer = sub i32 %spins, 1
  $pause
  br label %try
resting:
  %sleepy = icmp eq i32 %yields, 0
  br i1 %sleepy, label %sleep, label %yield
yield:
  %left = sub i32 %yields, 1
  %y = call i32 @sched_yield()
  br label %try
sleep:
  %a = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %w = call i64 (i64, ...) @syscall(i64 $futex, ptr @epoch, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  %b = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %after = load atomic i32, ptr @epoch acquire, align 4
  %woken = icmp ne i32 %after, %seen
  br i1 %woken, label %found, label %sleep
found:
  %latest = phi i32 [ %now, %try ], [ %after, %sleep ]
  call void @help(i32 %latest, i64 %own)
  br label %look
}

; Start threads `first` to `last - 1`, which no signal interrupts; returns the number of the first that did not start.
define i32 @pdojo_start(i32 %first, i32 %last) {
entry:
  %all = alloca [128 x i8]
  %mask = alloca [128 x i8]
  %thread = alloca i64
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  %m = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %mask)
  br label %loop
loop:
  %k = phi i32 [ %first, %entry ], [ %following, %started ]
  %more = icmp ult i32 %k, %last
  br i1 %more, label %start, label %end
start:
  %wide = zext i32 %k to i64
  %argument = inttoptr i64 %wide to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %fine = icmp eq i32 %failed, 0
  br i1 %fine, label %started, label %end
started:
  %id = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %id)
  %following = add i32 %k, 1
  br label %loop
end:
  %r = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr null)
  ret i32 %k
}

; Prepare the state, in a new process or after a fork, which leaves only the calling thread.
define i32 @pdojo_prepare(i32 %is_new) {
entry:
  store i32 0, ptr @sleepers
  store i32 0, ptr @busy
  store i64 -1, ptr @claimed
  %new = icmp ne i32 %is_new, 0
  br i1 %new, label %create, label %end
create:
  %failed = call i32 @pthread_key_create(ptr @key, ptr null)
  ret i32 %failed
end:
  ret i32 0
}

define i32 @omp_get_thread_num() {
  %key = load i32, ptr @key
  %place = call ptr @pthread_getspecific(i32 %key)
  %outside = icmp eq ptr %place, null
  br i1 %outside, label %zero, label %inside
inside:
  %number = load i64, ptr %place
  %short = trunc i64 %number to i32
  ret i32 %short
zero:
  ret i32 0
}

define i32 @omp_get_num_threads() {
  %key = load i32, ptr @key
  %place = call ptr @pthread_getspecific(i32 %key)
  %outside = icmp eq ptr %place, null
  br i1 %outside, label %one, label %inside
inside:
  %p1 = getelementptr %place, ptr %place, i32 0, i32 1
  %team = load i64, ptr %p1
  %short = trunc i64 %team to i32
  ret i32 %short
one:
  ret i32 1
}

define zeroext i8 @GOMP_loop_dynamic_start(i64 %first, i64 %end, i64 %by, i64 %chunk, ptr %low, ptr %high) {
  %key = load i32, ptr @key
  %place = call ptr @pthread_getspecific(i32 %key)
  %p3 = getelementptr %place, ptr %place, i32 0, i32 3
  store i64 %first, ptr %p3
  %p4 = getelementptr %place, ptr %place, i32 0, i32 4
  store i64 %end, ptr %p4
  %step = mul i64 %by, %chunk
  %p5 = getelementptr %place, ptr %place, i32 0, i32 5
  store i64 %step, ptr %p5
  %found = call i8 @GOMP_loop_dynamic_next(ptr %low, ptr %high)
  ret i8 %found
}

define zeroext i8 @GOMP_loop_dynamic_next(ptr %low, ptr %high) {
entry:
  %key = load i32, ptr @key
  %place = call ptr @pthread_getspecific(i32 %key)
  %p2 = getelementptr %place, ptr %place, i32 0, i32 2
  %counter = load ptr, ptr %p2
  %p3 = getelementptr %place, ptr %place, i32 0, i32 3
  %first = load i64, ptr %p3
  %p4 = getelementptr %place, ptr %place, i32 0, i32 4
  %end = load i64, ptr %p4
  %p5 = getelementptr %place, ptr %place, i32 0, i32 5
  %step = load i64, ptr %p5
  %piece = atomicrmw add ptr %counter, i64 1 monotonic
  %ahead = mul i64 %piece, %step
  %begin = add i64 %first, %ahead
  %is_left = icmp slt i64 %begin, %end
  br i1 %is_left, label %take, label %nothing
take:
  %beyond = add i64 %begin, %step
  %inside = icmp slt i64 %beyond, %end
  %last = select i1 %inside, i64 %beyond, i64 %end
  store i64 %begin, ptr %low
  store i64 %last, ptr %high
  ret i8 1
nothing:
  ret i8 0
}

define void @GOMP_loop_end_nowait() {
  ret void
}
