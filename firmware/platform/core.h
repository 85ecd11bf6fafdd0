/* The core's two registers for leaving and printing, and their stand-ins where the program runs as a Linux process
 * (qemu-riscv32). */
#ifndef CORE_H
#define CORE_H

#include "bytes.h"

/* The images' fixed places (core.ld). */
extern uint8_t __input[], __output[];
enum { IMAGE_ROOM = 4 << 20 };

/* What the program does; its result is the exit code. */
int program(void);

void core_print(const char *text);

/* As a Linux process: fills the input image from standard input, writes the output image to standard output. On the
 * bare core both do nothing, for the simulator sees to it. */
size_t core_read_input(void);
void core_write_output(size_t len);

#endif
