/* The IPsec firmware as a program of the core: one image in, one out. */
#include "core.h"
#include "image.h"

int program(void)
{
    size_t len = core_read_input();
    int code = image_run(__input, len, __output, IMAGE_ROOM);
    struct image_output head;
    memcpy(&head, __output, sizeof head);
    if (code == IMAGE_DONE)
        core_write_output(head.len);
    return code;
}
