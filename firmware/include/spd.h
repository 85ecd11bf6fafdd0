/* The security policy database (RFC 4301 4.4.1): the first policy that matches decides. */
#ifndef SPD_H
#define SPD_H

#include "sa.h"

enum { POLICY_MAX = 64 };

void spd_clear(void);

/* False if the record makes no sense or there is no room. `sa` is that which the record names, or NULL. */
bool spd_add(const struct image_policy *record, struct sa *sa);

/* What to do with a packet, and by which SA; -1 if no policy matches. */
int spd_lookup(enum direction direction, const struct packet *packet, const struct ip_view *view, struct sa **sa);

/* Whether a packet that came through `sa` is one that it may carry (RFC 4301 5.2, step 4). */
bool spd_allows(const struct sa *sa, const struct packet *packet, const struct ip_view *view);

#endif
