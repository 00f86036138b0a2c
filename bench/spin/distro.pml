/* The bounded Distro cluster of distrocheck, profile strict, for Spin: two nodes, one client (at a), no crash.

   An independent count: "states, stored" and "transitions" must be those of `distrocheck explore --nodes 2 --clients 1`
   within the same bounds (`bench/explore.py` compares them). One process, one `do`, each option one transition of the
   model. With one client only a sends, so there is one link, a->b; what is not in use is zero, so that equal
   situations are equal states. */

#ifndef CHANGES
#define CHANGES 2
#endif
#ifndef DROPS
#define DROPS 1
#endif
#ifndef SWALLOWS
#define SWALLOWS 1
#endif
#define IN_FLIGHT 2

#define NONE 0
#define CHANGE 1
#define DELETE 2
#define VERIFY 3

#define NEW 0
#define OPEN 1
#define ENDED 2

typedef Call { byte operation; byte revision; byte content; byte sent_as; bit lost };

byte connection = NEW;
bit left_cleanly = 0;
byte made = 0;                 /* changes so far */
byte contents[CHANGES + 1];    /* what the client published after each; 0 is nothing */
byte drops = DROPS;
byte swallows = SWALLOWS;

byte a_revision, a_content;    /* a holds the client, native, while the connection is open */
byte task;                     /* of a, for b: NONE, CHANGE or DELETE */
bit b_holds, b_gone;
byte b_revision, b_content;

Call calls[IN_FLIGHT];
byte in_flight = 0;

hidden byte operation, revision, first, position;
hidden byte fails;

inline push(o, r, c, s) {
  calls[in_flight].operation = o; calls[in_flight].revision = r; calls[in_flight].content = c;
  calls[in_flight].sent_as = s; in_flight++
}

inline take(at) {
  position = at;
  do
  :: position + 1 < in_flight ->
     calls[position].operation = calls[position + 1].operation; calls[position].revision = calls[position + 1].revision;
     calls[position].content = calls[position + 1].content; calls[position].sent_as = calls[position + 1].sent_as;
     calls[position].lost = calls[position + 1].lost; position++
  :: else -> break
  od;
  in_flight--;
  calls[in_flight].operation = 0; calls[in_flight].revision = 0; calls[in_flight].content = 0;
  calls[in_flight].sent_as = 0; calls[in_flight].lost = 0; position = 0
}

inline retry(o) {
  if
  :: (o == CHANGE || o == DELETE) && task != DELETE -> task = o
  :: else
  fi
}

/* There is a call on its way; `first` is where the first one is. */
#define SENT(i) (in_flight > i && !calls[i].lost)
#define SOME_SENT (SENT(0) || SENT(1))
#define FIRST (SENT(0) -> 0 : 1)
#define LOST(i) (in_flight > i && calls[i].lost)
#define TWINS (calls[0].operation == calls[1].operation && calls[0].revision == calls[1].revision && calls[0].content == calls[1].content && calls[0].sent_as == calls[1].sent_as && calls[0].lost == calls[1].lost)

active proctype cluster() {
  do
  :: d_step { connection == NEW; connection = OPEN }
  :: d_step { connection == OPEN && made < CHANGES;
       made++; contents[made] = made; a_revision++; a_content = made; task = CHANGE }
  :: d_step { connection == OPEN && made < CHANGES && contents[made] != 0;
       made++; a_revision++; a_content = 0; task = CHANGE }
  :: d_step { connection == OPEN;
       connection = ENDED; left_cleanly = 1; task = DELETE; a_revision = 0; a_content = 0 }
  :: d_step { task != NONE && in_flight < IN_FLIGHT;
       if
       :: task == CHANGE && connection == OPEN -> push(CHANGE, a_revision, a_content, 0)
       :: else -> push(DELETE, 0, 0, 0)
       fi;
       task = NONE }
  :: d_step { connection == OPEN && in_flight < IN_FLIGHT; push(VERIFY, a_revision, 0, a_content) }
  :: d_step { SOME_SENT;   /* the first one is delivered and answered, and a receives the answer */
       first = FIRST; operation = calls[first].operation; revision = calls[first].revision;
       fails = 0;
       if
       :: operation == CHANGE && b_gone -> fails = 1
       :: operation == CHANGE && !b_gone -> b_holds = 1; b_revision = revision; b_content = calls[first].content
       :: operation == DELETE -> b_holds = 0; b_revision = 0; b_content = 0; b_gone = 1
       :: operation == VERIFY -> fails = !(b_holds && b_revision == revision)
       fi;
       take(first);
       if
       :: fails && operation == VERIFY && connection == OPEN -> task = CHANGE
       :: fails && operation != VERIFY -> retry(operation)
       :: else
       fi;
       first = 0; operation = 0; revision = 0; fails = 0 }
  :: d_step { SOME_SENT && drops > 0; drops--; calls[FIRST].lost = 1 }
  :: d_step { SOME_SENT && swallows > 0;
       swallows--; first = FIRST;
       if
       :: calls[first].operation == DELETE -> left_cleanly = 0
       :: else
       fi;
       take(first); first = 0 }
  :: d_step { LOST(0) && !(LOST(1) && TWINS); operation = calls[0].operation; take(0); retry(operation); operation = 0 }
  :: d_step { LOST(1); operation = calls[1].operation; take(1); retry(operation); operation = 0 }
  od
}
