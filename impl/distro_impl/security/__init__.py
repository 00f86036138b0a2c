"""Who may ask what: certificates, the identity of servers, users and their tokens (Nacos' `core.auth` and `auth`)."""
