#include "capture.h"

enum { ETHERNET = 1, RAW_IP = 101 };
enum { ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86DD, ETHERTYPE_VLAN = 0x8100 };

static const uint32_t MICROSECONDS = 0xA1B2C3D4, NANOSECONDS = 0xA1B23C4D;

static uint32_t number(const struct capture *capture, uint32_t value)
{
    return capture->swapped ? swap32(value) : value;
}

bool capture_open(struct capture *capture, const char *path)
{
    uint32_t head[6];
    capture->file = fopen(path, "rb");
    if (capture->file == NULL || fread(head, sizeof head, 1, capture->file) != 1) {
        fprintf(stderr, "%s: cannot be read as a capture file\n", path);
        return false;
    }
    capture->swapped = head[0] == swap32(MICROSECONDS) || head[0] == swap32(NANOSECONDS);
    uint32_t magic = number(capture, head[0]), link = number(capture, head[5]) & 0xFFFF;
    capture->nanoseconds = magic == NANOSECONDS;
    capture->ethernet = link == ETHERNET;
    bool raw = link == RAW_IP || link == 12 || link == 14 || link == 228 || link == 229;
    if ((magic != MICROSECONDS && magic != NANOSECONDS) || !(raw || capture->ethernet)) {
        fprintf(stderr, "%s: not a pcap file of Ethernet or raw IP (pcapng: editcap -F pcap)\n", path);
        return false;
    }
    return true;
}

/* Where in a frame its IP packet begins; 0 if it has none. */
static uint32_t ip_at(const uint8_t *frame, uint32_t len)
{
    for (uint32_t at = 12; at + 2 <= len; at += 4) {
        uint16_t type = load_be16(frame + at);
        if (type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6)
            return at + 2;
        if (type != ETHERTYPE_VLAN)
            return 0;
    }
    return 0;
}

bool capture_next(struct capture *capture, struct record *record)
{
    uint32_t head[4];
    while (fread(head, sizeof head, 1, capture->file) == 1) {
        record->seconds = number(capture, head[0]);
        record->fraction = number(capture, head[1]);
        record->len = number(capture, head[2]);
        if (record->len > sizeof record->bytes || fread(record->bytes, 1, record->len, capture->file) != record->len)
            return false;
        uint32_t at = capture->ethernet ? ip_at(record->bytes, record->len) : 0;
        if (capture->ethernet && at == 0)
            continue;
        record->len -= at;
        memmove(record->bytes, record->bytes + at, record->len);
        return true;
    }
    return false;
}

bool capture_create(struct capture *capture, const char *path, const struct capture *like)
{
    const uint32_t head[6] = { like->nanoseconds ? NANOSECONDS : MICROSECONDS, 2 | 4 << 16, 0, 0, 65535, RAW_IP };
    *capture = (struct capture) { .file = fopen(path, "wb"), .nanoseconds = like->nanoseconds };
    return capture->file != NULL && fwrite(head, sizeof head, 1, capture->file) == 1;
}

bool capture_put(struct capture *capture, const struct record *record)
{
    const uint32_t head[4] = { record->seconds, record->fraction, record->len, record->len };
    return fwrite(head, sizeof head, 1, capture->file) == 1 &&
           fwrite(record->bytes, 1, record->len, capture->file) == record->len;
}
