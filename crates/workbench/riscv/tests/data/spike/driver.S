# Runs one instruction after the other, each from a record with what it is given, and writes down all that it leaves:
# in Spike, which tests/support/cases.rs makes records for, and on the simulated core.
#
#   s0 record, s1 output, s2 records left, s3 bytes of the vector registers / 4, s4 pool, s5 scratch, s9 mcause
    .option norvc
    .text
    .globl _start
_start:
    j begin
    .word after                 # where the core goes on behind a fault, which has no traps
begin:
    la t0, trap
    csrw mtvec, t0
    li t0, 0x600                # mstatus.VS: dirty
    csrs mstatus, t0
    li s0, 0x80010000           # CASES
    li s1, 0x80400000           # OUTPUT
    li s4, 0x80200000           # POOL
    li s5, 0x80300000           # SCRATCH
    ld s2, 0(s0)
    addi s0, s0, 64
    csrr s3, vlenb
    slli s3, s3, 3
next:
    beqz s2, done
    addi s2, s2, -1
    lwu t0, 28(s0)              # where in the pool the registers' values begin
    add t0, t0, s4
    mv t1, s5
    addi t2, s5, 256
1:  ld t3, 0(t0)
    sd t3, 0(t1)
    addi t0, t0, 8
    addi t1, t1, 8
    bne t1, t2, 1b
    .insn 4, 0x0c3072d7         # vsetvli t0, x0, e8, m8, ta, ma
    lwu t0, 28(s0)
    add t0, t0, s4
    .insn 4, 0x02028007         # vle8.v v0, (t0)
    add t0, t0, s3
    .insn 4, 0x02028407         # vle8.v v8, (t0)
    add t0, t0, s3
    .insn 4, 0x02028807         # vle8.v v16, (t0)
    add t0, t0, s3
    .insn 4, 0x02028c07         # vle8.v v24, (t0)
    lwu t0, 24(s0)
    la t1, slot
    sw t0, 0(t1)
    fence.i
    ld t0, 0(s0)
    ld t1, 8(s0)
    .insn 4, 0x80537057         # vsetvl x0, t1, t0
    ld t2, 16(s0)
    csrw 0x008, t2              # vstart
    ld a0, 32(s0)
    ld a1, 40(s0)
    ld a2, 48(s0)
    li s9, 64                   # no exception; what is skipped by a jump over the next store is 0
slot:
    .word 0
after:
    sd s9, 0(s1)
    sd a2, 8(s1)
    csrr t0, 0x008
    sd t0, 16(s1)
    csrr t0, 0xc20              # vl
    sd t0, 24(s1)
    csrr t0, 0xc21              # vtype
    sd t0, 32(s1)
    addi s1, s1, 40
    csrw 0x008, zero
    .insn 4, 0x0c3072d7         # vsetvli t0, x0, e8, m8, ta, ma
    .insn 4, 0x02048027         # vse8.v v0, (s1)
    add s1, s1, s3
    .insn 4, 0x02048427         # vse8.v v8, (s1)
    add s1, s1, s3
    .insn 4, 0x02048827         # vse8.v v16, (s1)
    add s1, s1, s3
    .insn 4, 0x02048c27         # vse8.v v24, (s1)
    add s1, s1, s3
    mv t1, s5
    addi t2, s5, 256
1:  ld t3, 0(t1)
    sd t3, 0(s1)
    addi t1, t1, 8
    addi s1, s1, 8
    bne t1, t2, 1b
    addi s0, s0, 64
    j next
done:
    ecall
    .align 2
trap:
    csrr s9, mcause
    li t0, 11                   # ecall
    beq s9, t0, leave
    j after
leave:
    la t0, tohost
    li t1, 1
    sd t1, 0(t0)
2:  j 2b
    .set tohost, 0x80008000
    .globl tohost
