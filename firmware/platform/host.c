/* The firmware on this machine.
 *
 *   ipsec-host < INPUT-IMAGE > OUTPUT-IMAGE             as on the core
 *   ipsec-host out|in IMAGE FROM.pcap TO.pcap           SAs and policies of an image, packets of a capture
 *
 * Ends with what image_run returns, or 2 for what cannot be read or written. Drops are counted on standard error. */
#include <stdlib.h>

#include "capture.h"
#include "fence.h"
#include "image.h"
#include "ipsec.h"
#include "spd.h"

enum { FAILED = 2, IMAGE_MAX = 256 << 20 };

static const char *const drop_names[] = {
#define DROP_NAME(number, name) name,
    DROP_LIST(DROP_NAME)
};

static uint8_t *read_all(FILE *file, size_t *len)
{
    uint8_t *bytes = malloc(IMAGE_MAX);
    *len = bytes == NULL ? 0 : fread(bytes, 1, IMAGE_MAX, file);
    return bytes;
}

static int run_image(void)
{
    size_t len;
    uint8_t *input = read_all(stdin, &len), *output = malloc(IMAGE_MAX);
    if (input == NULL || output == NULL)
        return FAILED;
    int code = image_run(input, len, output, IMAGE_MAX);
    if (code == IMAGE_DONE && fwrite(output, ((struct image_output *)(void *)output)->len, 1, stdout) != 1)
        code = FAILED;
    free(input);
    free(output);
    return code;
}

static int run_capture(bool inbound, FILE *sas, const char *from, const char *to)
{
    static struct packet packet;
    static struct record record;
    unsigned counts[DROP_COUNT] = { 0 };
    struct capture input, output;
    size_t len;
    uint8_t *image = read_all(sas, &len);
    int code = image == NULL ? FAILED : image_load(image, len);
    free(image);
    if (code != IMAGE_DONE) {
        fprintf(stderr, "the image with SAs and policies makes no sense\n");
        return code;
    }
    if (!capture_open(&input, from) || !capture_create(&output, to, &input))
        return FAILED;
    while (capture_next(&input, &record)) {
        packet_load(&packet, record.bytes, record.len);
        fence(&packet, inbound);
        enum drop drop = inbound ? ipsec_input(&packet) : ipsec_output(&packet);
        unfence(&packet);
        counts[drop]++;
        if (drop != DROP_PASSED)
            continue;
        record.len = (uint32_t)packet.len;
        memcpy(record.bytes, packet.data, packet.len);
        if (!capture_put(&output, &record))
            return FAILED;
    }
    fclose(input.file);
    for (unsigned i = 0; i < DROP_COUNT; i++)
        if (counts[i] != 0)
            fprintf(stderr, "%s %u\n", drop_names[i], counts[i]);
    return fclose(output.file) == 0 ? 0 : FAILED;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return run_image();
    bool inbound = strcmp(argv[1], "in") == 0;
    FILE *sas = argc == 5 && (inbound || strcmp(argv[1], "out") == 0) ? fopen(argv[2], "rb") : NULL;
    if (sas == NULL) {
        fprintf(stderr, "ipsec-host out|in IMAGE FROM.pcap TO.pcap\nipsec-host < INPUT-IMAGE > OUTPUT-IMAGE\n");
        return FAILED;
    }
    int code = run_capture(inbound, sas, argv[3], argv[4]);
    fclose(sas);
    return code;
}
