# The firmware of the emulated computer: it turns the vector unit on, calls kernels, and records their exceptions.
#
# The processor starts in real mode and goes to 64-bit mode with the page tables at TABLES. Then it calls the functions that
# the records at RECORDS name, and stops at a breakpoint of the emulator. `rom.py` has the constants and the layout of a
# record. Sources: Intel SDM vol. 3, 9.8.5 (64-bit mode), 6.14 (exceptions), 13.3 (state of AVX-512).

# The entries of `rom.py`, 16 bytes each.
rom:
.code16
  cli
  jmp start
.code64
.balign 16
  jmp exception
.balign 16
memset:
  movl %esi, %eax
  movq %rdi, %rsi
  movq %rdx, %rcx
  rep stosb
  movq %rsi, %rax
  ret
.balign 16
memcpy:
  movq %rdi, %rax
  movq %rdx, %rcx
  rep movsb
  ret
.balign 16
GOMP_parallel:                  # a team of one thread
  movq %rdi, %rax
  movq %rsi, %rdi
  jmpq *%rax
.balign 16
GOMP_loop_dynamic_start:        # all iterations in one piece
  movq %rdi, (%r8)
  movq %rsi, (%r9)
  cmpq %rsi, %rdi
  setl %al
  ret
.balign 16
GOMP_loop_dynamic_next:
  xorl %eax, %eax
  ret
.balign 16
GOMP_loop_end_nowait:
  ret
.balign 16
omp_get_thread_num:
  xorl %eax, %eax
  ret
.balign 16
omp_get_num_threads:
  movl $1, %eax
  ret

.code16
start:
  lgdtl %cs:gdt_pointer - rom + (ROM & 0xffff)
  movl $0x11, %eax              # CR0: ET, PE
  movl %eax, %cr0
  ljmpl $40, $(protected_mode - rom + ROM)
.code32
protected_mode:
  movl $16, %eax
  movw %ax, %ds
  movl $TABLES, %eax            # Bochs has read our memory into blocks that it orders when they are first touched
  movl %eax, %cr3
1:
  testb $0, (%eax)
  addl $BLOCK, %eax
  cmpl $MEMORY, %eax
  jb 1b
  movl $0x40620, %eax           # CR4: PAE, OSFXSR, OSXMMEXCPT, OSXSAVE
  movl %eax, %cr4
  movl $0xc0000080, %ecx        # EFER: LME
  movl $0x100, %eax
  xorl %edx, %edx
  wrmsr
  movl $0x80010033, %eax        # CR0: PG, WP, NE, ET, MP, PE
  movl %eax, %cr0
  ljmpl $8, $(long_mode - rom + ROM)

.code64
long_mode:
  movl $16, %eax
  movw %ax, %ss
  movw %ax, %es
  lidt idt_pointer(%rip)
  movl $24, %eax
  ltr %ax
  xorl %ecx, %ecx               # XCR0: x87, SSE, AVX, the three parts of AVX-512
  xorl %edx, %edx
  movl $0xe7, %eax
  xsetbv
next:
  movl $STACK_TOP, %esp
  movl $RECORDS, %r15d
  movq (%r15), %rbx
  cmpq 8(%r15), %rbx
  je done
  cld
  fninit
  ldmxcsr mxcsr(%rip)
  movl $(ARGUMENTS - 6), %ecx
1:
  pushq HEADER + 5 * 8(%rbx, %rcx, 8)
  decl %ecx
  jnz 1b
  movq HEADER(%rbx), %rdi
  movq HEADER + 8(%rbx), %rsi
  movq HEADER + 16(%rbx), %rdx
  movq HEADER + 24(%rbx), %rcx
  movq HEADER + 32(%rbx), %r8
  movq HEADER + 40(%rbx), %r9
  callq *(%rbx)
  movl $RECORDS, %r15d
  movq (%r15), %rbx
  movq $RETURNED, 8(%rbx)
advance:
  addq $(HEADER + ARGUMENTS * 8), (%r15)
  jmp next
done:
  xchgw %bx, %bx                # the emulator's breakpoint
1:
  hlt
  jmp 1b

exception:                      # on the stack: the vector, the error code, the processor's frame
  movl $RECORDS, %r15d
  movq (%r15), %rbx
  popq %rax
  addl $EXCEPTION, %eax
  movq %rax, 8(%rbx)
  popq 16(%rbx)
  popq 24(%rbx)
  movq %cr2, %rax
  movq %rax, 32(%rbx)
  jmp advance

mxcsr:
  .long 0x1f80
gdt_pointer:
  .word 6 * 8 - 1
  .long gdt - rom + ROM
idt_pointer:
  .word 32 * 16 - 1
  .quad IDT
.balign 8
gdt:                            # nothing; 64-bit code; data; the task, in two entries; 32-bit code
  .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
  .word 103, (task - rom + ROM) & 0xffff, 0x8900 + (ROM >> 16 & 0xff), ROM >> 24 << 8
  .quad 0, 0x00cf9b000000ffff
task:                           # only the stack of exceptions counts
  .zero 36
  .quad FAULT_STACK_TOP
  .zero 60
