/* Reset. On the bare core all registers are zero; a Linux process (qemu-riscv32) begins with a stack. That difference
 * tells the same program where it runs. */
    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    mv a0, sp
    la sp, __stack_top
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  call core_main
3:  j 3b
    .size _start, . - _start
