/* The driver: SAs, policies and packets out of an image, packets into another. It stands for the network interface that
 * a simulated core does not have. */
#include "image.h"

#include "ipsec.h"
#include "spd.h"

struct reader {
    const uint8_t *at;
    size_t left;
};

/* The next `len` bytes of the image, filled up to whole words; NULL if there are not so many. */
static const void *take(struct reader *reader, size_t len)
{
    const uint8_t *taken = reader->at;
    if (len > reader->left || (len + 3) / 4 * 4 > reader->left)
        return NULL;
    reader->at += (len + 3) / 4 * 4;
    reader->left -= (len + 3) / 4 * 4;
    return taken;
}

static bool load_databases(struct reader *reader, const struct image_header *header)
{
    struct sa *sas[SA_MAX];
    if (header->sas > SA_MAX || header->policies > POLICY_MAX)
        return false;
    for (uint32_t i = 0; i < header->sas; i++) {
        const struct image_sa *record = take(reader, sizeof *record);
        sas[i] = record == NULL ? NULL : sad_add(record);
        if (sas[i] == NULL)
            return false;
    }
    for (uint32_t i = 0; i < header->policies; i++) {
        const struct image_policy *record = take(reader, sizeof *record);
        if (record == NULL || !spd_add(record, record->sa < header->sas ? sas[record->sa] : NULL))
            return false;
    }
    return true;
}

static NOINIT struct packet packet;

/* By words, as it is done with an interface's memory; what is left over in the last one is copied too. */
static void copy(uint8_t *to, const uint8_t *from, size_t len)
{
    for (size_t at = 0; at < len; at += 4)
        store_word(to + at, load_word(from + at));
}

PROFILED static bool driver_load(const uint8_t *bytes, size_t len)
{
    if (len > PACKET_MAX)
        return false;
    packet.data = packet.buffer + PACKET_HEADROOM;
    packet.len = len;
    copy(packet.data, bytes, len);
    return true;
}

PROFILED static void driver_store(uint8_t *to)
{
    copy(to, packet.data, packet.len);
}

/* The header, with the reader behind the databases; NULL if the image makes no sense. */
PROFILED static const struct image_header *load_image(struct reader *reader)
{
    const struct image_header *header = take(reader, sizeof *header);
    if (header == NULL || header->magic != IMAGE_INPUT_MAGIC || header->version != IMAGE_VERSION)
        return NULL;
    ipsec_reset((header->flags & IMAGE_END_HOST) != 0);
    return load_databases(reader, header) ? header : NULL;
}

int image_load(const uint8_t *input, size_t input_len)
{
    struct reader reader = { input, input_len };
    return load_image(&reader) == NULL ? IMAGE_BAD : IMAGE_DONE;
}

int image_run(const uint8_t *input, size_t input_len, uint8_t *output, size_t output_room)
{
    struct reader reader = { input, input_len };
    const struct image_header *header = load_image(&reader);
    if (header == NULL)
        return IMAGE_BAD;

    size_t used = sizeof(struct image_output);
    if (output_room < used)
        return IMAGE_OUTPUT_FULL;
    for (uint32_t i = 0; i < header->packets; i++) {
        const struct image_packet *record = take(&reader, sizeof *record);
        const uint8_t *bytes = record == NULL ? NULL : take(&reader, record->len);
        if (bytes == NULL)
            return IMAGE_BAD;
        enum drop drop = DROP_TOO_LONG;
        if (driver_load(bytes, record->len))
            drop = record->flags & IMAGE_PACKET_INBOUND ? ipsec_input(&packet) : ipsec_output(&packet);
        struct image_result result = { drop, drop == DROP_PASSED ? (uint32_t)packet.len : 0 };
        size_t room = sizeof result + (result.len + 3) / 4 * 4;
        if (output_room - used < room)
            return IMAGE_OUTPUT_FULL;
        memcpy(output + used, &result, sizeof result);
        if (drop == DROP_PASSED)
            driver_store(output + used + sizeof result);
        used += room;
    }
    struct image_output head = { IMAGE_OUTPUT_MAGIC, IMAGE_VERSION, header->packets, (uint32_t)used };
    memcpy(output, &head, sizeof head);
    return IMAGE_DONE;
}
