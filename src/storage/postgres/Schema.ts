/**
 * The tables on PostgreSQL: those that SQLite's migrations create (`test/storage/Engines.test.ts` compares them), and additions for several writers,
 * such as node leases and sequences that are used under row locks.
 */
import { migrationsTable } from "../database/Unusable.ts"

/** Text that is compared and sorted by bytes, as in SQLite, independently of the database's collation. */
const text = 'text COLLATE "C"'

/** The statements that create the base schema, in order. */
export const base: ReadonlyArray<string> = [
  `CREATE TABLE tollgate_ledger_accounts (
    id ${text} PRIMARY KEY,
    tenant_id ${text} NOT NULL UNIQUE,
    number bigint NOT NULL UNIQUE,
    status ${text} NOT NULL CHECK (status IN ('active', 'suspended', 'closed')),
    held bigint NOT NULL CHECK (held >= 0),
    funded bigint NOT NULL CHECK (funded IN (0, 1))
  )`,
  `CREATE INDEX tollgate_ledger_accounts_held ON tollgate_ledger_accounts (held) WHERE held > 0`,
  `CREATE TABLE tollgate_ledger_amounts (
    account bigint PRIMARY KEY,
    giftable bigint NOT NULL CHECK (giftable >= 0),
    granted bigint NOT NULL CHECK (granted >= 0),
    reserved bigint NOT NULL CHECK (reserved >= 0 AND reserved <= giftable + granted),
    entries bigint NOT NULL CHECK (entries >= 0),
    newest bigint,
    booked_at bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50)`,
  `CREATE TABLE tollgate_ledger_entries (
    seq bigint PRIMARY KEY,
    billing_account_id ${text} NOT NULL,
    number bigint NOT NULL,
    type ${text} NOT NULL CHECK (type IN ('credit', 'debit')),
    amount bigint NOT NULL CHECK (amount > 0),
    balance bigint NOT NULL CHECK (balance >= 0),
    giftable bigint NOT NULL CHECK (giftable >= 0 AND giftable <= balance),
    source ${text},
    reference_id ${text} NOT NULL,
    description ${text} NOT NULL,
    at bigint NOT NULL,
    previous bigint
  )`,
  `CREATE TABLE tollgate_usage_by_tenant (
    tenant_id ${text} NOT NULL,
    start bigint NOT NULL,
    application_id ${text} NOT NULL,
    usage_type ${text} NOT NULL,
    provider ${text} NOT NULL,
    requests bigint NOT NULL,
    successes bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    units double precision NOT NULL,
    cost bigint NOT NULL CHECK (cost >= 0),
    latency_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, start, application_id, usage_type, provider)
  )`,
  `CREATE TABLE tollgate_usage_by_caller (
    tenant_id ${text} NOT NULL,
    account_id ${text} NOT NULL,
    grain bigint NOT NULL,
    start bigint NOT NULL,
    model ${text} NOT NULL,
    endpoint ${text} NOT NULL,
    requests bigint NOT NULL,
    successes bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    units double precision NOT NULL,
    cost bigint NOT NULL CHECK (cost >= 0),
    latency_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, account_id, grain, start, model, endpoint)
  )`,
  `CREATE TABLE tollgate_usage_by_payer (
    billing_account_id ${text} NOT NULL,
    start bigint NOT NULL,
    account_id ${text} NOT NULL,
    billing_source_kind ${text} NOT NULL,
    requests bigint NOT NULL,
    successes bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    units double precision NOT NULL,
    cost bigint NOT NULL CHECK (cost >= 0),
    latency_ms bigint NOT NULL,
    PRIMARY KEY (billing_account_id, start, account_id, billing_source_kind)
  )`,
  `CREATE TABLE tollgate_tenants_accounts (
    id ${text} PRIMARY KEY,
    home_tenant_id ${text} NOT NULL,
    email ${text} NOT NULL,
    name ${text} NOT NULL,
    email_verified bigint NOT NULL CHECK (email_verified IN (0, 1)),
    granted_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
  )`,
  `CREATE UNIQUE INDEX tollgate_tenants_accounts_email ON tollgate_tenants_accounts (email) WHERE email_verified = 1`,
  `CREATE TABLE tollgate_tenants_identities (
    provider ${text} NOT NULL,
    subject ${text} NOT NULL,
    account_id ${text} NOT NULL,
    email ${text} NOT NULL,
    PRIMARY KEY (provider, subject)
  )`,
  `CREATE INDEX tollgate_tenants_identities_account ON tollgate_tenants_identities (account_id)`,
  `CREATE TABLE tollgate_tenants_tenants (
    id ${text} PRIMARY KEY,
    name ${text} NOT NULL,
    created_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_tenants_memberships (
    account_id ${text} NOT NULL,
    tenant_id ${text} NOT NULL,
    role ${text} NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    status ${text} NOT NULL CHECK (status IN ('active', 'invited', 'suspended', 'removed')),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (account_id, tenant_id)
  )`,
  `CREATE INDEX tollgate_tenants_memberships_tenant ON tollgate_tenants_memberships (tenant_id, account_id)`,
  `CREATE TABLE tollgate_tenants_applications (
    id ${text} PRIMARY KEY,
    tenant_id ${text} NOT NULL,
    account_id ${text} NOT NULL,
    name ${text} NOT NULL,
    description ${text} NOT NULL,
    key_hash ${text} NOT NULL UNIQUE,
    key_prefix ${text} NOT NULL,
    last_used_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
  )`,
  `CREATE INDEX tollgate_tenants_applications_tenant ON tollgate_tenants_applications (tenant_id, id)`,
  `CREATE TABLE tollgate_auth_families (
    id ${text} PRIMARY KEY,
    account_id ${text} NOT NULL,
    client_id ${text} NOT NULL,
    team_first bigint NOT NULL CHECK (team_first IN (0, 1)),
    signed_in_at bigint NOT NULL,
    revoked_at bigint,
    scope ${text} NOT NULL DEFAULT 'all')`,
  `CREATE TABLE tollgate_auth_refresh_tokens (
    hash ${text} PRIMARY KEY,
    family_id ${text} NOT NULL,
    tenant_id ${text} NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint
  )`,
  `CREATE INDEX tollgate_auth_refresh_tokens_family ON tollgate_auth_refresh_tokens (family_id)`,
  `CREATE TABLE tollgate_auth_signing_keys (
    kid ${text} PRIMARY KEY,
    public ${text} NOT NULL,
    sealed ${text} NOT NULL,
    created_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_mail_outbox (
    key ${text} PRIMARY KEY,
    recipient ${text} NOT NULL,
    sealed ${text} NOT NULL,
    status ${text} NOT NULL CHECK (status IN ('waiting', 'sending', 'sent', 'failed', 'unknown')),
    attempts bigint NOT NULL,
    due_at bigint NOT NULL,
    created_at bigint NOT NULL,
    ended_at bigint,
    last_error ${text},
    caused_by ${text}
  )`,
  `CREATE INDEX tollgate_mail_outbox_open ON tollgate_mail_outbox (status, due_at) WHERE status IN ('waiting', 'sending')`,
  `CREATE TABLE tollgate_notifications_notices (
    id ${text} PRIMARY KEY,
    account_id ${text} NOT NULL,
    kind ${text} NOT NULL,
    title ${text} NOT NULL,
    text ${text} NOT NULL,
    data ${text} NOT NULL,
    created_at bigint NOT NULL,
    read_at bigint
  )`,
  `CREATE INDEX tollgate_notifications_notices_account ON tollgate_notifications_notices (account_id, id)`,
  `CREATE INDEX tollgate_notifications_notices_unread ON tollgate_notifications_notices (account_id) WHERE read_at IS NULL`,
  `CREATE TABLE tollgate_tenants_plans (
    tenant_id ${text} PRIMARY KEY,
    plan ${text} NOT NULL CHECK (plan IN ('none', 'team')),
    status ${text} NOT NULL CHECK (status IN ('active', 'past_due', 'canceled')),
    seats bigint NOT NULL CHECK (seats >= 0),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_tenants_invites (
    id ${text} PRIMARY KEY,
    tenant_id ${text} NOT NULL,
    email ${text} NOT NULL,
    role ${text} NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    token_hash ${text} NOT NULL UNIQUE,
    invited_by ${text} NOT NULL,
    status ${text} NOT NULL CHECK (status IN ('pending', 'accepted', 'revoked')),
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    ended_at bigint
  )`,
  `CREATE INDEX tollgate_tenants_invites_tenant ON tollgate_tenants_invites (tenant_id, id)`,
  `CREATE UNIQUE INDEX tollgate_tenants_invites_pending ON tollgate_tenants_invites (tenant_id, email) WHERE status = 'pending'`,
  `CREATE TABLE tollgate_billing_settings (
    tenant_id ${text} PRIMARY KEY,
    billing_emails ${text} NOT NULL,
    member_spend_enabled bigint CHECK (member_spend_enabled IN (0, 1)),
    updated_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_pooling_selections (
    account_id ${text} PRIMARY KEY,
    pinned ${text},
    updated_at bigint NOT NULL
  )`,
  `CREATE INDEX tollgate_usage_by_payer_account ON tollgate_usage_by_payer (account_id, start)`,
  `CREATE TABLE tollgate_transfers (
    id ${text} PRIMARY KEY,
    billing_account_id ${text} NOT NULL,
    sender_account_id ${text} NOT NULL,
    recipient_email ${text} NOT NULL,
    recipient_account_id ${text},
    kind ${text} NOT NULL CHECK (kind IN ('gift', 'transfer')),
    amount bigint NOT NULL CHECK (amount > 0),
    reason ${text},
    message ${text},
    status ${text} NOT NULL CHECK (status IN ('pending', 'accepted', 'declined', 'revoked', 'expired')),
    token_hash ${text} NOT NULL UNIQUE,
    idempotency_key ${text} NOT NULL,
    request_hash ${text} NOT NULL,
    letters bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    last_sent_at bigint NOT NULL,
    resent_at bigint,
    ended_at bigint,
    UNIQUE (billing_account_id, idempotency_key)
  )`,
  `CREATE INDEX tollgate_transfers_sent ON tollgate_transfers (billing_account_id, id)`,
  `CREATE INDEX tollgate_transfers_received ON tollgate_transfers (recipient_email, id)`,
  `CREATE INDEX tollgate_transfers_pending ON tollgate_transfers (expires_at) WHERE status = 'pending'`,
  `CREATE TABLE tollgate_price_versions (
    id ${text} PRIMARY KEY,
    lines ${text} NOT NULL,
    first_used_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_media_jobs (
    id ${text} PRIMARY KEY,
    call ${text} NOT NULL UNIQUE,
    account_id ${text} NOT NULL,
    route ${text} NOT NULL CHECK (route IN ('media', 'images')),
    type ${text} NOT NULL CHECK (type IN ('video', 'image')),
    model ${text} NOT NULL,
    provider ${text} NOT NULL,
    upstream ${text} NOT NULL,
    endpoint ${text} NOT NULL,
    vendor_id ${text},
    status ${text} NOT NULL CHECK (status IN ('SUBMITTING', 'IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'CANCELLED')),
    queue_position bigint,
    units bigint NOT NULL,
    unit ${text} NOT NULL,
    quote bigint NOT NULL CHECK (quote >= 0),
    settled bigint NOT NULL CHECK (settled IN (0, 1)),
    cost bigint NOT NULL CHECK (cost >= 0 AND cost <= quote),
    inference_time double precision,
    output ${text},
    error ${text},
    error_type ${text},
    cancel_requested bigint NOT NULL CHECK (cancel_requested IN (0, 1)),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
  )`,
  `CREATE INDEX tollgate_media_jobs_open ON tollgate_media_jobs (created_at) WHERE settled = 0`,
  `CREATE TABLE tollgate_payments_customers (
    tenant_id ${text} PRIMARY KEY,
    customer_id ${text} NOT NULL
  )`,
  `CREATE TABLE tollgate_payments_payments (
    id ${text} PRIMARY KEY,
    tenant_id ${text} NOT NULL,
    kind ${text} NOT NULL CHECK (kind IN ('checkout', 'auto_reload', 'offline')),
    amount bigint NOT NULL CHECK (amount > 0),
    due bigint NOT NULL CHECK (due >= 0),
    created_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_autoreload_settings (
    tenant_id ${text} PRIMARY KEY,
    enabled bigint NOT NULL CHECK (enabled IN (0, 1)),
    threshold bigint NOT NULL,
    amount_credits bigint NOT NULL,
    payment_method_id ${text},
    attempt ${text},
    in_flight_started_at bigint,
    last_attempt_at bigint,
    last_charged_at bigint,
    last_failed bigint NOT NULL CHECK (last_failed IN (0, 1)),
    last_error ${text},
    failures bigint NOT NULL,
    disabled_reason ${text},
    alerts_enabled bigint NOT NULL CHECK (alerts_enabled IN (0, 1)),
    warn_threshold bigint,
    rearm_threshold bigint,
    warned bigint NOT NULL CHECK (warned IN (0, 1)),
    updated_at bigint NOT NULL,
    looked bigint, fell bigint NOT NULL DEFAULT 0 CHECK (fell IN (0, 1)))`,
  `CREATE TABLE tollgate_autoreload_attempts (
    id ${text} PRIMARY KEY,
    tenant_id ${text} NOT NULL,
    amount_credits bigint NOT NULL,
    payment_method_id ${text} NOT NULL,
    status ${text} NOT NULL CHECK (status IN ('in_flight', 'paid', 'failed')),
    error ${text},
    created_at bigint NOT NULL,
    ended_at bigint
  )`,
  `CREATE INDEX tollgate_autoreload_attempts_open ON tollgate_autoreload_attempts (created_at) WHERE status = 'in_flight'`,
  `CREATE TABLE tollgate_auth_clients (
    client_id ${text} PRIMARY KEY,
    kind ${text} NOT NULL CHECK (kind IN ('app', 'oauth', 'web')),
    name ${text} NOT NULL,
    redirect_uris ${text} NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    trusted bigint NOT NULL DEFAULT 0 CHECK (trusted IN (0, 1)))`,
  `CREATE TABLE tollgate_auth_codes (
    hash ${text} PRIMARY KEY,
    client_id ${text} NOT NULL,
    redirect_uri ${text} NOT NULL,
    account_id ${text} NOT NULL,
    tenant_id ${text} NOT NULL,
    challenge ${text} NOT NULL,
    scope ${text} NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint,
    family_id ${text},
    nonce ${text}
  )`,
  `CREATE INDEX tollgate_auth_codes_age ON tollgate_auth_codes (expires_at)`,
  `CREATE TABLE tollgate_auth_client_tokens (
    hash ${text} PRIMARY KEY,
    client_id ${text} NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint
  )`,
  `CREATE INDEX tollgate_auth_client_tokens_age ON tollgate_auth_client_tokens (expires_at)`,
  `CREATE INDEX tollgate_auth_refresh_tokens_age ON tollgate_auth_refresh_tokens (expires_at)`,
  `CREATE TABLE tollgate_contact_messages (
    id ${text} PRIMARY KEY,
    client_id ${text} NOT NULL,
    name ${text} NOT NULL,
    email ${text} NOT NULL,
    inquiry_type ${text} NOT NULL,
    message ${text} NOT NULL,
    subscribe bigint NOT NULL CHECK (subscribe IN (0, 1)),
    created_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_usage_dimensions (
    number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    account_id ${text} NOT NULL,
    tenant_id ${text} NOT NULL,
    application_id ${text} NOT NULL,
    usage_type ${text} NOT NULL CHECK (usage_type IN ('inference', 'tool')),
    endpoint ${text} NOT NULL,
    model ${text} NOT NULL,
    provider ${text} NOT NULL,
    price ${text} NOT NULL,
    billing_account_id ${text} NOT NULL,
    billing_source_tenant_id ${text} NOT NULL,
    billing_source_kind ${text} NOT NULL CHECK (billing_source_kind IN ('own', 'team')),
    billing_source_why ${text} NOT NULL,
    UNIQUE (account_id, tenant_id, application_id, usage_type, endpoint, model, provider, price, billing_account_id, billing_source_tenant_id, billing_source_kind, billing_source_why)
  )`,
  `CREATE TABLE tollgate_ledger_reservations (
    id ${text} PRIMARY KEY,
    dimensions bigint NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 0),
    at bigint NOT NULL,
    run ${text} NOT NULL
  )`,
  `CREATE TABLE tollgate_usage_records (
    seq bigint PRIMARY KEY,
    id ${text} NOT NULL,
    tenant_id ${text} NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    dimensions bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    units double precision NOT NULL,
    cost bigint NOT NULL CHECK (cost >= 0),
    uncollected bigint NOT NULL CHECK (uncollected >= 0),
    reserved bigint NOT NULL,
    usage_source ${text} NOT NULL,
    latency_ms bigint NOT NULL,
    success bigint NOT NULL CHECK (success IN (0, 1)),
    error_type ${text},
    previous bigint
  )`,
  `CREATE UNIQUE INDEX tollgate_usage_records_id ON tollgate_usage_records (id)`,
  `CREATE INDEX tollgate_mail_outbox_cause ON tollgate_mail_outbox (caused_by, created_at) WHERE caused_by IS NOT NULL`,
  `CREATE TABLE tollgate_ops_readiness (
    id bigint PRIMARY KEY CHECK (id = 1),
    checked_at bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_payments_movements (
    payment_id ${text} NOT NULL,
    id ${text} NOT NULL,
    kind ${text} NOT NULL CHECK (kind IN ('refund', 'total', 'dispute')),
    amount bigint NOT NULL CHECK (amount >= 0),
    returned bigint NOT NULL CHECK (returned IN (0, 1)),
    heard_at bigint NOT NULL,
    PRIMARY KEY (payment_id, id)
  )`,
  `CREATE INDEX tollgate_ledger_entries_purchases ON tollgate_ledger_entries (reference_id) WHERE source = 'purchase'`,
  `CREATE TABLE tollgate_idempotency_keys (
    tenant_id ${text} NOT NULL,
    account_id ${text} NOT NULL,
    holder ${text} NOT NULL,
    key ${text} NOT NULL,
    request_hash ${text} NOT NULL,
    run ${text} NOT NULL,
    call ${text},
    status bigint,
    headers ${text},
    body bytea,
    created_at bigint NOT NULL,
    answered_at bigint,
    PRIMARY KEY (tenant_id, account_id, key, holder)
  )`,
  `CREATE INDEX tollgate_idempotency_keys_age ON tollgate_idempotency_keys (created_at)`,
  `CREATE TABLE tollgate_usage_sorted_runs (
    tenant_id ${text} NOT NULL,
    level bigint NOT NULL,
    runs bigint NOT NULL,
    PRIMARY KEY (tenant_id, level)
  )`,
  `CREATE TABLE tollgate_usage_sorted_blocks (
    tenant_id ${text} NOT NULL,
    sort ${text} NOT NULL,
    level bigint NOT NULL,
    run bigint NOT NULL,
    value bigint NOT NULL,
    seq bigint NOT NULL,
    places bytea NOT NULL
  )`,
  `CREATE UNIQUE INDEX tollgate_usage_sorted_blocks_place
    ON tollgate_usage_sorted_blocks (tenant_id, sort, level, run, value, seq)`,
  `CREATE TABLE tollgate_usage_watermarks (
    tenant_id ${text} PRIMARY KEY,
    number bigint NOT NULL
  )`,
  `CREATE TABLE tollgate_ledger_offsets (
    owner bigint NOT NULL,
    number bigint NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (owner, number)
  )`,
  `CREATE TABLE tollgate_usage_tenants (
    number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    id ${text} NOT NULL UNIQUE
  )`,
  `CREATE TABLE tollgate_usage_heads (
    tenant bigint PRIMARY KEY,
    records bigint NOT NULL,
    newest bigint,
    booked_at bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50)`,
  `CREATE TABLE tollgate_usage_offsets (
    owner bigint NOT NULL,
    number bigint NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (owner, number)
  )`,
  `CREATE INDEX tollgate_usage_dimensions_payer ON tollgate_usage_dimensions (billing_account_id, tenant_id)`,
  `CREATE INDEX tollgate_usage_dimensions_pooled ON tollgate_usage_dimensions (tenant_id)
    WHERE billing_source_tenant_id <> tenant_id`,
  `CREATE TABLE tollgate_ledger_verifications (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    whole bigint NOT NULL CHECK (whole IN (0, 1)),
    findings bigint NOT NULL,
    millis bigint NOT NULL,
    entry bigint NOT NULL,
    record bigint NOT NULL,
    world bigint NOT NULL,
    revenue bigint NOT NULL
  )`,
  // Rows are numbered under the lock of their account or tenant, so the rows of one owner are in chronological order.
  `CREATE SEQUENCE tollgate_ledger_accounts_seq`,
  `CREATE SEQUENCE tollgate_ledger_entries_seq`,
  `CREATE SEQUENCE tollgate_usage_records_seq`,
  // The running nodes. Each node renews its lease. Other nodes do not touch its work until the lease expires (`until`).
  `CREATE TABLE tollgate_sql_nodes (
    run ${text} PRIMARY KEY,
    name ${text} NOT NULL,
    version ${text} NOT NULL,
    started_at bigint NOT NULL,
    until timestamptz NOT NULL,
    ended boolean NOT NULL DEFAULT false
  )`,
  // Unpacks an array or object in one parameter, like SQLite's function with this name.
  `CREATE FUNCTION json_each(list text) RETURNS TABLE (key text, value text) LANGUAGE sql IMMUTABLE ROWS 100 AS $$
    SELECT (o - 1)::text, v FROM jsonb_array_elements_text(CASE jsonb_typeof(list::jsonb) WHEN 'array' THEN list::jsonb ELSE '[]' END)
      WITH ORDINALITY a (v, o)
    UNION ALL
    SELECT k, v FROM jsonb_each_text(CASE jsonb_typeof(list::jsonb) WHEN 'object' THEN list::jsonb ELSE '{}' END) b (k, v)
  $$`,
  `CREATE FUNCTION json_extract(list text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT list::jsonb #>> ARRAY[trim(both '$[]' from path)]
  $$`,
  `CREATE FUNCTION instr(whole text, part text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT strpos(whole, part) $$`
]

/**
 * The changes to the schema after `base`, by migration. A database is migrated while nodes of the previous version serve it, so a migration must
 * create indexes only on tables that it creates itself. Building any other index would block the table's writers (see `indexes`).
 */
export const later: Readonly<Record<string, ReadonlyArray<string>>> = {
  "0002_token_details": [`ALTER TABLE tollgate_usage_records ADD COLUMN token_details ${text}`],
  "0003_devices": [
    `ALTER TABLE tollgate_auth_clients ADD COLUMN device bigint NOT NULL DEFAULT 0 CHECK (device IN (0, 1))`,
    `CREATE TABLE tollgate_auth_device_codes (
      hash ${text} PRIMARY KEY,
      user_code_hash ${text} NOT NULL,
      client_id ${text} NOT NULL,
      scope ${text} NOT NULL,
      expires_at bigint NOT NULL,
      pause_ms bigint NOT NULL,
      polled_at bigint,
      decision ${text} CHECK (decision IN ('allow', 'deny')),
      account_id ${text},
      tenant_id ${text},
      used_at bigint,
      family_id ${text}
    )`,
    `CREATE UNIQUE INDEX tollgate_auth_device_codes_user ON tollgate_auth_device_codes (user_code_hash)`,
    `CREATE INDEX tollgate_auth_device_codes_age ON tollgate_auth_device_codes (expires_at)`
  ],
  "0004_versions": [
    `ALTER TABLE ${migrationsTable} ADD COLUMN oldest integer NOT NULL DEFAULT 1`,
    // The newest migration that the node's version knows.
    `ALTER TABLE tollgate_sql_nodes ADD COLUMN knows integer NOT NULL DEFAULT 1`
  ],
  // `limits` counts a tenant's keys with limits. Batches read it under locks that they need in any case, to decide whether to lock limits.
  "0005_limits": [
    `CREATE TABLE tollgate_ledger_limits (
      application_id ${text} PRIMARY KEY,
      tenant_id ${text} NOT NULL,
      amount bigint NOT NULL CHECK (amount >= 0),
      period ${text} NOT NULL CHECK (period IN ('month', 'total')),
      start bigint NOT NULL,
      spent bigint NOT NULL CHECK (spent >= 0),
      reserved bigint NOT NULL CHECK (reserved >= 0),
      ceiling bigint NOT NULL CHECK (ceiling >= amount AND ceiling >= spent + reserved)
    ) WITH (fillfactor = 50)`,
    `CREATE INDEX tollgate_ledger_limits_tenant ON tollgate_ledger_limits (tenant_id)`,
    `ALTER TABLE tollgate_ledger_amounts ADD COLUMN limits bigint NOT NULL DEFAULT 0`,
    `ALTER TABLE tollgate_usage_heads ADD COLUMN limits bigint NOT NULL DEFAULT 0`,
    `ALTER TABLE tollgate_tenants_applications ADD COLUMN expires_at bigint`,
    `ALTER TABLE tollgate_tenants_applications ADD COLUMN allowed_models ${text}`
  ],
  "0006_operator": [
    `CREATE TABLE tollgate_operator_sessions (
      id ${text} PRIMARY KEY,
      name ${text} NOT NULL,
      kind ${text} NOT NULL CHECK (kind IN ('browser', 'token')),
      code_hash ${text} UNIQUE,
      cookie_hash ${text} UNIQUE,
      created_at bigint NOT NULL,
      signed_in_at bigint,
      expires_at bigint NOT NULL,
      ended_at bigint
    )`,
    `CREATE INDEX tollgate_operator_sessions_age ON tollgate_operator_sessions (expires_at)`,
    `CREATE TABLE tollgate_operator_audit (
      id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
      at bigint NOT NULL,
      operator ${text} NOT NULL,
      via ${text} NOT NULL CHECK (via IN ('console', 'token', 'command')),
      action ${text} NOT NULL,
      tenant_id ${text},
      account_id ${text},
      subject ${text},
      result ${text} NOT NULL CHECK (result IN ('done', 'refused')),
      details ${text} NOT NULL
    )`,
    `CREATE INDEX tollgate_operator_audit_tenant ON tollgate_operator_audit (tenant_id, id) WHERE tenant_id IS NOT NULL`,
    `CREATE INDEX tollgate_operator_audit_account ON tollgate_operator_audit (account_id, id) WHERE account_id IS NOT NULL`,
    `CREATE INDEX tollgate_operator_audit_operator ON tollgate_operator_audit (operator, id)`,
    `CREATE TABLE tollgate_operator_grants (
      reference ${text} PRIMARY KEY,
      tenant_id ${text} NOT NULL,
      amount bigint NOT NULL CHECK (amount > 0),
      created_at bigint NOT NULL
    )`,
    `CREATE TABLE tollgate_tenants_suspensions (
      account_id ${text} PRIMARY KEY,
      suspended_at bigint NOT NULL
    )`
  ],
  // This migration contained only indexes. They are now in `indexes`.
  "0007_console": [],
  "0008_tallies": [
    `CREATE TABLE tollgate_usage_tallies (
      tenant_id ${text} NOT NULL,
      level bigint NOT NULL,
      run bigint NOT NULL,
      totals bytea NOT NULL,
      kinds bytea,
      sums bytea NOT NULL
    )`,
    `CREATE UNIQUE INDEX tollgate_usage_tallies_run ON tollgate_usage_tallies (tenant_id, level, run)`
  ],
  "0009_by_provider": [
    `CREATE TABLE tollgate_usage_by_provider (
      start bigint NOT NULL,
      provider ${text} NOT NULL,
      model ${text} NOT NULL,
      requests bigint NOT NULL,
      successes bigint NOT NULL,
      prompt_tokens bigint NOT NULL,
      completion_tokens bigint NOT NULL,
      units double precision NOT NULL,
      cost bigint NOT NULL CHECK (cost >= 0),
      uncollected bigint NOT NULL CHECK (uncollected >= 0),
      PRIMARY KEY (start, provider, model)
    )`,
    `CREATE TABLE tollgate_usage_by_provider_end (
      id bigint PRIMARY KEY CHECK (id = 1),
      record bigint NOT NULL
    )`
  ],
  "0010_debts": [
    `ALTER TABLE tollgate_ledger_accounts ADD COLUMN debts ${text}`,
    `ALTER TABLE tollgate_payments_payments ADD COLUMN followed bigint`
  ],
  "0011_belonging": [
    `ALTER TABLE tollgate_tenants_applications ADD COLUMN client_id ${text}`,
    `ALTER TABLE tollgate_tenants_applications ADD COLUMN client_name ${text}`,
    `ALTER TABLE tollgate_tenants_applications ADD COLUMN family_id ${text}`,
    `ALTER TABLE tollgate_tenants_applications ADD COLUMN bounds ${text}`,
    `ALTER TABLE tollgate_media_jobs ADD COLUMN tenant_id ${text}`,
    `ALTER TABLE tollgate_media_jobs ADD COLUMN holder ${text}`,
    `CREATE TABLE tollgate_chat_kept (
      tenant_id ${text} NOT NULL,
      account_id ${text} NOT NULL,
      id ${text} NOT NULL,
      number bigint NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY (tenant_id, account_id, id)
    )`,
    `CREATE INDEX tollgate_chat_kept_number ON tollgate_chat_kept (tenant_id, account_id, number)`,
    `CREATE INDEX tollgate_chat_kept_age ON tollgate_chat_kept (at)`
  ],
  "0012_nodes": [
    // A replaced run never gets a lease again, because its node was restarted under the same name.
    `ALTER TABLE tollgate_sql_nodes ADD COLUMN replaced boolean NOT NULL DEFAULT false`,
    // The changes that every node must see even if a notification is lost (`Notifications`).
    `CREATE TABLE tollgate_sql_signals (
      number bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
      topic ${text} NOT NULL,
      id ${text} NOT NULL,
      at timestamptz NOT NULL DEFAULT clock_timestamp()
    )`,
    `CREATE FUNCTION tollgate_sql_signal() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO tollgate_sql_signals (topic, id)
        VALUES ('belonging', (CASE WHEN TG_OP = 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END) ->> TG_ARGV[0]);
      RETURN NULL;
    END $$`,
    `CREATE TRIGGER tollgate_sql_signal AFTER DELETE OR UPDATE OF expires_at, allowed_models ON tollgate_tenants_applications
      FOR EACH ROW EXECUTE FUNCTION tollgate_sql_signal('id')`,
    `CREATE TRIGGER tollgate_sql_signal AFTER DELETE OR UPDATE ON tollgate_tenants_memberships
      FOR EACH ROW EXECUTE FUNCTION tollgate_sql_signal('account_id')`,
    `CREATE TRIGGER tollgate_sql_signal AFTER INSERT OR DELETE ON tollgate_tenants_suspensions
      FOR EACH ROW EXECUTE FUNCTION tollgate_sql_signal('account_id')`
  ],
  // From now on, sign-ins are deleted when they end. Nodes of an earlier version still only mark them.
  "0013_kept_rows": [
    // The user's sign-in time, for the ID token.
    `ALTER TABLE tollgate_auth_codes ADD COLUMN auth_time bigint`,
    `DELETE FROM tollgate_auth_refresh_tokens
      WHERE family_id IN (SELECT id FROM tollgate_auth_families WHERE revoked_at IS NOT NULL)`,
    `DELETE FROM tollgate_auth_families WHERE revoked_at IS NOT NULL`
  ],
  "0014_provisioning": [
    `CREATE TABLE tollgate_operator_keys (
      id ${text} PRIMARY KEY,
      name ${text} NOT NULL,
      key_hash ${text} NOT NULL UNIQUE,
      -- The first characters of the key, to tell it by.
      key_prefix ${text} NOT NULL,
      -- Separated by spaces.
      scopes ${text} NOT NULL,
      created_by ${text} NOT NULL,
      created_at bigint NOT NULL,
      expires_at bigint NOT NULL,
      last_used_at bigint,
      ended_at bigint
    )`,
    `CREATE TABLE tollgate_provisioning_externals (
      kind ${text} NOT NULL CHECK (kind IN ('person', 'tenant', 'key')),
      external_id ${text} NOT NULL,
      -- Of the account, tenant or application.
      id ${text} NOT NULL,
      created_at bigint NOT NULL,
      -- Credit is given once for an external id, also if it is removed and used again.
      credited_at bigint,
      removed_at bigint,
      PRIMARY KEY (kind, external_id)
    )`,
    `CREATE INDEX tollgate_provisioning_externals_id ON tollgate_provisioning_externals (kind, id) WHERE removed_at IS NULL`
  ],
  "0015_sign_in": [
    `CREATE TABLE tollgate_tenants_group_members (
      account_id ${text} NOT NULL,
      tenant_id ${text} NOT NULL,
      provider ${text} NOT NULL,
      PRIMARY KEY (account_id, tenant_id, provider)
    )`,
    `CREATE TABLE tollgate_auth_links (
      token_hash ${text} PRIMARY KEY,
      browser_hash ${text} NOT NULL,
      email ${text} NOT NULL,
      destination ${text} NOT NULL,
      created_at bigint NOT NULL,
      expires_at bigint NOT NULL,
      used_at bigint
    )`,
    `CREATE INDEX tollgate_auth_links_email ON tollgate_auth_links (email, created_at)`,
    `CREATE INDEX tollgate_auth_links_age ON tollgate_auth_links (expires_at)`,
    `CREATE TABLE tollgate_auth_returns (
      hash ${text} PRIMARY KEY,
      expires_at bigint NOT NULL
    )`,
    `CREATE INDEX tollgate_auth_returns_age ON tollgate_auth_returns (expires_at)`
  ],
  "0016_allowances": [
    // The terms are stored in the row, or in a plan in the configuration.
    `CREATE TABLE tollgate_allowances_allowances (
      tenant_id ${text} PRIMARY KEY,
      plan ${text},
      amount bigint CHECK (amount > 0),
      period ${text} CHECK (period IN ('week', 'month')),
      rollover ${text} CHECK (rollover IN ('none', 'all', 'up_to')),
      up_to bigint CHECK (up_to > 0),
      -- Counts every change, so that a grant is made by the terms that it read.
      revision bigint NOT NULL,
      -- Counts the times that it began. A grant of an earlier one is not taken back.
      era bigint NOT NULL,
      began_at bigint NOT NULL,
      changed_at bigint NOT NULL,
      ended_at bigint,
      CHECK ((plan IS NULL) = (amount IS NOT NULL AND period IS NOT NULL AND rollover IS NOT NULL))
    )`,
    `CREATE TABLE tollgate_allowances_grants (
      tenant_id ${text} NOT NULL,
      period ${text} NOT NULL CHECK (period IN ('week', 'month')),
      number bigint NOT NULL,
      era bigint NOT NULL,
      reference ${text} NOT NULL UNIQUE,
      amount bigint NOT NULL CHECK (amount > 0),
      -- Counts the grants of the tenant.
      place bigint NOT NULL,
      at bigint NOT NULL,
      PRIMARY KEY (tenant_id, period, number)
    )`,
    `CREATE UNIQUE INDEX tollgate_allowances_grants_place ON tollgate_allowances_grants (tenant_id, place)`,
    `CREATE TABLE tollgate_vouchers_vouchers (
      id ${text} PRIMARY KEY,
      code_hash ${text} NOT NULL UNIQUE,
      -- The first characters of the code, to tell it by.
      code_prefix ${text} NOT NULL,
      amount bigint NOT NULL CHECK (amount > 0),
      uses_max bigint NOT NULL CHECK (uses_max > 0),
      uses bigint NOT NULL CHECK (uses >= 0 AND uses <= uses_max),
      description ${text} NOT NULL,
      created_at bigint NOT NULL,
      expires_at bigint,
      ended_at bigint
    )`,
    `CREATE TABLE tollgate_vouchers_uses (
      voucher_id ${text} NOT NULL,
      tenant_id ${text} NOT NULL,
      account_id ${text} NOT NULL,
      reference ${text} NOT NULL UNIQUE,
      at bigint NOT NULL,
      PRIMARY KEY (voucher_id, tenant_id)
    )`
  ],
  "0017_request_ids": [`ALTER TABLE tollgate_usage_records ADD COLUMN request_id ${text}`],
  "0018_passkeys_scim": [
    `CREATE TABLE tollgate_passkeys_passkeys (
      id ${text} PRIMARY KEY,
      credential_id ${text} NOT NULL UNIQUE,
      account_id ${text} NOT NULL,
      public_key ${text} NOT NULL,
      counter bigint NOT NULL,
      transports ${text} NOT NULL,
      name ${text} NOT NULL,
      created_at bigint NOT NULL,
      last_used_at bigint
    )`,
    `CREATE INDEX tollgate_passkeys_passkeys_account ON tollgate_passkeys_passkeys (account_id, id)`,
    // A challenge belongs to an account that registers a passkey, or to a browser that signs in.
    `CREATE TABLE tollgate_passkeys_challenges (
      hash ${text} PRIMARY KEY,
      account_id ${text},
      browser_hash ${text},
      expires_at bigint NOT NULL,
      CHECK ((account_id IS NULL) <> (browser_hash IS NULL))
    )`,
    `CREATE INDEX tollgate_passkeys_challenges_age ON tollgate_passkeys_challenges (expires_at)`,
    `CREATE INDEX tollgate_passkeys_challenges_account ON tollgate_passkeys_challenges (account_id)`,
    `CREATE TABLE tollgate_scim_users (
      account_id ${text} PRIMARY KEY,
      -- In lower case.
      user_name ${text} NOT NULL,
      external_id ${text},
      given_name ${text} NOT NULL,
      family_name ${text} NOT NULL,
      display_name ${text} NOT NULL,
      email ${text} NOT NULL,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL,
      deleted_at bigint
    )`,
    `CREATE UNIQUE INDEX tollgate_scim_users_name ON tollgate_scim_users (user_name) WHERE deleted_at IS NULL`,
    `CREATE INDEX tollgate_scim_users_external ON tollgate_scim_users (external_id) WHERE deleted_at IS NULL`,
    `CREATE TABLE tollgate_scim_groups (
      id ${text} PRIMARY KEY,
      display_name ${text} NOT NULL UNIQUE,
      external_id ${text},
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL
    )`,
    `CREATE TABLE tollgate_scim_members (
      group_id ${text} NOT NULL,
      account_id ${text} NOT NULL,
      PRIMARY KEY (group_id, account_id)
    )`,
    `CREATE INDEX tollgate_scim_members_account ON tollgate_scim_members (account_id)`
  ],
  // For earlier suspensions, the audit log shows whether the directory requested the last one.
  "0019_suspended_by": [
    `ALTER TABLE tollgate_tenants_suspensions ADD COLUMN by_operator bigint NOT NULL DEFAULT 1 CHECK (by_operator IN (0, 1))`,
    `ALTER TABLE tollgate_tenants_suspensions ADD COLUMN by_directory bigint NOT NULL DEFAULT 0 CHECK (by_directory IN (0, 1))`,
    `UPDATE tollgate_tenants_suspensions s SET by_operator = 0, by_directory = 1 WHERE (
      SELECT a.operator || ' ' || a.via FROM tollgate_operator_audit a
      WHERE a.account_id = s.account_id AND a.action = 'person.suspend' ORDER BY a.id DESC LIMIT 1
    ) = 'scim token'`
  ],
  // The service adds existing records in the background.
  "0020_by_key": [
    `CREATE TABLE tollgate_usage_by_key (
      application_id ${text} NOT NULL,
      grain bigint NOT NULL,
      start bigint NOT NULL,
      model ${text} NOT NULL,
      endpoint ${text} NOT NULL,
      requests bigint NOT NULL,
      successes bigint NOT NULL,
      prompt_tokens bigint NOT NULL,
      completion_tokens bigint NOT NULL,
      cost bigint NOT NULL CHECK (cost >= 0),
      latency_ms bigint NOT NULL,
      PRIMARY KEY (application_id, grain, start, model, endpoint)
    )`,
    `CREATE TABLE tollgate_usage_by_key_end (
      id bigint PRIMARY KEY CHECK (id = 1),
      record bigint NOT NULL
    )`
  ],
  // Earlier versions need the table of limits and distinguish dimensions by fewer columns, so they cannot serve after this migration.
  "0021_budgets": [
    `CREATE TABLE tollgate_ledger_budgets (
      id ${text} PRIMARY KEY,
      kind ${text} NOT NULL CHECK (kind IN ('key', 'run', 'budget')),
      -- NULL: of all tenants.
      tenant_id ${text},
      anchor ${text} NOT NULL,
      period ${text} NOT NULL CHECK (period IN ('minute', 'hour', 'day', 'week', 'month', 'total')),
      usd bigint CHECK (usd >= 0),
      -- The other terms, as JSON.
      terms ${text} NOT NULL,
      start bigint NOT NULL,
      spent bigint NOT NULL CHECK (spent >= 0),
      reserved bigint NOT NULL CHECK (reserved >= 0),
      ceiling bigint CHECK (ceiling >= spent + reserved),
      tokens bigint NOT NULL CHECK (tokens >= 0),
      tokens_reserved bigint NOT NULL CHECK (tokens_reserved >= 0),
      requests bigint NOT NULL CHECK (requests >= 0),
      open bigint NOT NULL CHECK (open >= 0),
      crossed bigint NOT NULL
    ) WITH (fillfactor = 50)`,
    `INSERT INTO tollgate_ledger_budgets
      SELECT application_id, 'key', tenant_id, application_id, period, amount,
        '{"name":"","applies_to":{},"mode":"refuse","notify_at":[],"by_operator":false,"created_by":"","created_at":0,"limit":{},"raises":[]}',
        start, spent, reserved, ceiling, 0, 0, 0, 0, 0 FROM tollgate_ledger_limits`,
    `DROP TABLE tollgate_ledger_limits`,
    `CREATE INDEX tollgate_ledger_budgets_anchor ON tollgate_ledger_budgets (anchor)`,
    `CREATE INDEX tollgate_ledger_budgets_tenant ON tollgate_ledger_budgets (tenant_id, kind)`,
    `CREATE INDEX tollgate_ledger_budgets_crossed ON tollgate_ledger_budgets (id) WHERE crossed > 0`,
    `ALTER TABLE tollgate_ledger_reservations ADD COLUMN budgets ${text}`,
    `ALTER TABLE tollgate_ledger_reservations ADD COLUMN tokens bigint NOT NULL DEFAULT 0`,
    `ALTER TABLE tollgate_usage_records ADD COLUMN budgets ${text}`,
    ...["run_id", "tags", "end_user"].map(
      (column) => `ALTER TABLE tollgate_usage_dimensions ADD COLUMN ${column} ${text} NOT NULL DEFAULT ''`
    ),
    `DO $$ DECLARE name text; BEGIN
      SELECT conname INTO name FROM pg_constraint WHERE conrelid = 'tollgate_usage_dimensions'::regclass AND contype = 'u';
      EXECUTE format('ALTER TABLE tollgate_usage_dimensions DROP CONSTRAINT %I', name);
    END $$`,
    `ALTER TABLE tollgate_usage_dimensions ADD UNIQUE (account_id, tenant_id, application_id, usage_type, endpoint, model, provider, price,
      billing_account_id, billing_source_tenant_id, billing_source_kind, billing_source_why, run_id, tags, end_user)`,
    // The tags of keys, as lines of `name=value`, and whether a tenant has enabled tags for the sessions and agents of coding agents.
    `ALTER TABLE tollgate_tenants_applications ADD COLUMN tags ${text}`,
    `ALTER TABLE tollgate_tenants_tenants ADD COLUMN attribution_tags bigint NOT NULL DEFAULT 0 CHECK (attribution_tags IN (0, 1))`,
    `DROP TRIGGER tollgate_sql_signal ON tollgate_tenants_applications`,
    `CREATE TRIGGER tollgate_sql_signal AFTER DELETE OR UPDATE OF expires_at, allowed_models, tags ON tollgate_tenants_applications
      FOR EACH ROW EXECUTE FUNCTION tollgate_sql_signal('id')`,
    `CREATE TABLE tollgate_runs (
      id ${text} PRIMARY KEY,
      tenant_id ${text} NOT NULL,
      account_id ${text} NOT NULL,
      application_id ${text} NOT NULL,
      -- NULL: the API key made it.
      parent ${text},
      -- The ids of the runs that it descends from, and its own, with '/' between them.
      path ${text} NOT NULL,
      level bigint NOT NULL CHECK (level >= 1),
      name ${text} NOT NULL,
      key_hash ${text} NOT NULL,
      key_prefix ${text} NOT NULL,
      models ${text},
      tags ${text} NOT NULL,
      end_user ${text} NOT NULL,
      created_at bigint NOT NULL,
      expires_at bigint NOT NULL,
      ended_at bigint
    )`,
    `CREATE UNIQUE INDEX tollgate_runs_key ON tollgate_runs (key_hash)`,
    `CREATE UNIQUE INDEX tollgate_runs_path ON tollgate_runs (path)`,
    `CREATE INDEX tollgate_runs_application ON tollgate_runs (application_id, id)`,
    `CREATE INDEX tollgate_runs_account ON tollgate_runs (tenant_id, account_id, id)`,
    `CREATE INDEX tollgate_runs_open ON tollgate_runs (tenant_id, expires_at) WHERE ended_at IS NULL`,
    `CREATE INDEX tollgate_runs_due ON tollgate_runs (expires_at) WHERE ended_at IS NULL`,
    `CREATE INDEX tollgate_runs_ended ON tollgate_runs (ended_at) WHERE level = 1 AND ended_at IS NOT NULL`,
    // Nodes notice by themselves that a run has expired, so only an early end sends a signal.
    `CREATE TRIGGER tollgate_sql_signal AFTER UPDATE OF ended_at ON tollgate_runs
      FOR EACH ROW WHEN (NEW.ended_at < NEW.expires_at) EXECUTE FUNCTION tollgate_sql_signal('id')`,
    `CREATE TABLE tollgate_budgets_budgets (
      id ${text} PRIMARY KEY,
      -- NULL: of all tenants.
      tenant_id ${text},
      key_id ${text},
      created_by ${text} NOT NULL,
      by_operator bigint NOT NULL CHECK (by_operator IN (0, 1)),
      template_id ${text},
      template_revision bigint,
      revision bigint NOT NULL
    )`,
    `CREATE INDEX tollgate_budgets_budgets_tenant ON tollgate_budgets_budgets (tenant_id)`,
    `CREATE INDEX tollgate_budgets_budgets_operator ON tollgate_budgets_budgets (id) WHERE by_operator = 1`,
    `CREATE UNIQUE INDEX tollgate_budgets_budgets_template ON tollgate_budgets_budgets (template_id, tenant_id)
      WHERE template_id IS NOT NULL`,
    `CREATE TABLE tollgate_budgets_templates (
      id ${text} PRIMARY KEY,
      -- NULL: of each new tenant.
      plan ${text},
      -- As JSON.
      terms ${text} NOT NULL,
      created_at bigint NOT NULL,
      revision bigint NOT NULL
    )`,
    `CREATE TABLE tollgate_budgets_raises (
      budget_id ${text} NOT NULL,
      number bigint NOT NULL,
      usd bigint NOT NULL CHECK (usd > 0),
      until bigint NOT NULL,
      created_by ${text} NOT NULL,
      created_at bigint NOT NULL,
      PRIMARY KEY (budget_id, number)
    )`,
    `CREATE TABLE tollgate_budgets_notices (
      budget_id ${text} NOT NULL,
      -- Of the period.
      start bigint NOT NULL,
      -- Millionths of the limit.
      threshold bigint NOT NULL,
      told_at bigint NOT NULL,
      PRIMARY KEY (budget_id, start, threshold)
    )`
  ],
  "0022_open_runs": [
    // `indexes` contains the new index.
    `DROP INDEX tollgate_runs_open`
  ],
  "0023_vendor_calls": [
    `ALTER TABLE tollgate_usage_records ADD COLUMN vendor_request ${text}`,
    `ALTER TABLE tollgate_usage_records ADD COLUMN vendor_cost bigint`,
    // NOT VALID, because checking the existing rows would block every settlement.
    `ALTER TABLE tollgate_usage_records ADD CONSTRAINT tollgate_usage_records_vendor_cost_check CHECK (vendor_cost >= 0) NOT VALID`
  ],
  "0024_reconciliations": [
    `CREATE TABLE tollgate_reconciliation_days (
      vendor ${text} NOT NULL,
      day ${text} NOT NULL,
      reconciled_at bigint NOT NULL,
      billed bigint NOT NULL,
      expected bigint NOT NULL,
      charged bigint NOT NULL,
      -- As JSON, with amounts as strings.
      causes ${text} NOT NULL,
      models ${text} NOT NULL,
      differences ${text} NOT NULL,
      PRIMARY KEY (vendor, day)
    )`,
    `CREATE TABLE tollgate_reconciliation_pages (
      vendor ${text} NOT NULL,
      first ${text} NOT NULL,
      last ${text} NOT NULL,
      report ${text} NOT NULL,
      number bigint NOT NULL,
      -- The cursor of the next page. NULL: this is the last one.
      next ${text},
      -- As JSON, with amounts as strings.
      lines ${text} NOT NULL,
      read_at bigint NOT NULL,
      PRIMARY KEY (vendor, first, last, report, number)
    )`
  ],
  "0025_log": [
    `CREATE TABLE tollgate_log_tiles (
      level bigint NOT NULL,
      n bigint NOT NULL,
      -- The row of the first entry, at level 0.
      first bigint,
      hashes bytea NOT NULL,
      PRIMARY KEY (level, n)
    )`,
    `CREATE INDEX tollgate_log_tiles_first ON tollgate_log_tiles (first)`,
    `CREATE TABLE tollgate_log_head (
      id bigint PRIMARY KEY CHECK (id = 1),
      origin ${text} NOT NULL,
      salt ${text} NOT NULL,
      size bigint NOT NULL CHECK (size >= 0),
      -- The row of the newest entry in the log.
      entry bigint NOT NULL,
      checkpoint ${text} NOT NULL
    )`,
    `CREATE TABLE tollgate_log_keys (
      public ${text} PRIMARY KEY,
      -- NULL: the deployment's secret was lost, and the key signs no more.
      sealed ${text},
      created_at bigint NOT NULL
    )`
  ],
  "0026_log_proofs": [
    `CREATE TABLE tollgate_log_published (
      id bigint PRIMARY KEY CHECK (id = 1),
      size bigint NOT NULL CHECK (size >= 0),
      -- The row of the newest entry in the checkpoint.
      entry bigint NOT NULL,
      -- With the witnesses' cosignatures.
      checkpoint ${text} NOT NULL,
      cosignatures bigint NOT NULL,
      -- When as many witnesses as required last cosigned. 0: never.
      cosigned_at bigint NOT NULL
    )`,
    `CREATE TABLE tollgate_log_witnesses (
      -- The verifier key.
      witness ${text} PRIMARY KEY,
      -- The size of the newest checkpoint that it cosigned, and when.
      size bigint NOT NULL,
      cosigned_at bigint NOT NULL,
      -- Why the witness contradicts the log. NULL: it does not.
      conflict ${text}
    )`,
    `CREATE TABLE tollgate_log_liabilities (
      day ${text} PRIMARY KEY,
      -- The row of the last entry of the day, and the number of all entries up to it.
      entry bigint NOT NULL,
      entries bigint NOT NULL,
      -- NULL while the tree is being built.
      statement ${text}
    )`,
    `CREATE TABLE tollgate_log_liability_blocks (
      day ${text} NOT NULL,
      n bigint NOT NULL,
      -- The numbers of the first and the last account.
      first bigint NOT NULL,
      last bigint NOT NULL,
      width bigint NOT NULL,
      -- In digits, because a sum may exceed 64 bits.
      sum ${text} NOT NULL,
      hash bytea NOT NULL,
      PRIMARY KEY (day, n)
    )`
  ],
  "0027_run_records": [
    // `indexes` contains the replacement, an index of the calls of runs. Only some databases contain the old index.
    `DROP INDEX IF EXISTS tollgate_usage_records_budgeted`
  ],
  "0028_log_forms": [
    `CREATE TABLE tollgate_log_forms (
      -- The rows of the first and the last entry.
      first bigint PRIMARY KEY,
      last bigint NOT NULL CHECK (last >= first)
    )`
  ],
  "0029_body_hashes": [
    `ALTER TABLE tollgate_usage_records ADD COLUMN request_hash bytea`,
    `ALTER TABLE tollgate_usage_records ADD COLUMN answer_hash bytea`
  ]
}

/** An index that is not unique, as in `CREATE INDEX name ON table definition`. */
export interface Index {
  readonly name: string
  readonly table: string
  readonly definition: string
}

/**
 * The indexes that were added later than their tables. The tables can be large by then. They are not part of a migration: `Indexes` builds the
 * missing ones while nodes serve, and an empty database gets them with its tables.
 */
export const indexes: ReadonlyArray<Index> = [
  { name: "tollgate_tenants_tenants_name", table: "tollgate_tenants_tenants", definition: "(lower(name))" },
  { name: "tollgate_tenants_accounts_name", table: "tollgate_tenants_accounts", definition: "(lower(name))" },
  { name: "tollgate_tenants_accounts_address", table: "tollgate_tenants_accounts", definition: "(lower(email))" },
  { name: "tollgate_tenants_applications_name", table: "tollgate_tenants_applications", definition: "(lower(name))" },
  { name: "tollgate_tenants_applications_prefix", table: "tollgate_tenants_applications", definition: "(key_prefix)" },
  {
    name: "tollgate_auth_families_account",
    table: "tollgate_auth_families",
    definition: "(account_id) WHERE revoked_at IS NULL"
  },
  {
    name: "tollgate_tenants_applications_member",
    table: "tollgate_tenants_applications",
    definition: "(tenant_id, account_id)"
  },
  {
    name: "tollgate_tenants_applications_family",
    table: "tollgate_tenants_applications",
    definition: "(family_id) WHERE family_id IS NOT NULL"
  },
  { name: "tollgate_auth_codes_account", table: "tollgate_auth_codes", definition: "(account_id, expires_at)" },
  {
    name: "tollgate_mail_outbox_recipient",
    table: "tollgate_mail_outbox",
    definition: "(recipient) WHERE status IN ('waiting', 'sending')"
  },
  {
    name: "tollgate_mail_outbox_ended",
    table: "tollgate_mail_outbox",
    definition: "(created_at) WHERE status IN ('sent', 'failed', 'unknown')"
  },
  { name: "tollgate_media_jobs_account", table: "tollgate_media_jobs", definition: "(account_id, route, id)" },
  {
    name: "tollgate_payments_payments_tenant",
    table: "tollgate_payments_payments",
    definition: "(tenant_id, created_at, id)"
  },
  { name: "tollgate_usage_dimensions_tenant", table: "tollgate_usage_dimensions", definition: "(tenant_id)" },
  {
    name: "tollgate_usage_dimensions_run",
    table: "tollgate_usage_dimensions",
    definition: "(run_id) WHERE run_id <> ''"
  },
  {
    name: "tollgate_runs_open",
    table: "tollgate_runs",
    definition: "(tenant_id, expires_at, ended_at) WHERE ended_at IS NULL"
  },
  {
    name: "tollgate_usage_records_of_runs",
    table: "tollgate_usage_records",
    definition: `(dimensions) WHERE instr(budgets, '"run_') > 0`
  },
  {
    name: "tollgate_idempotency_keys_kept",
    table: "tollgate_idempotency_keys",
    definition: "(account_id, answered_at, length(body)) WHERE body IS NOT NULL"
  },
  {
    name: "tollgate_tenants_invites_address",
    table: "tollgate_tenants_invites",
    definition: "(email) WHERE status = 'pending'"
  },
  {
    name: "tollgate_ledger_entries_sources",
    table: "tollgate_ledger_entries",
    definition: "(billing_account_id, number, source) WHERE source IS NOT NULL"
  }
]

/**
 * The oldest version that can serve after each contracting migration, as the number of that version's newest migration (`Migrate`). All other
 * migrations only expand, so every version can serve after them.
 */
export const contracting: Readonly<Record<string, number>> = {
  // Deletes sign-ins that have ended. Every version treats them like missing ones.
  "0013_kept_rows": 1,
  // Sets a new column that earlier versions do not read.
  "0019_suspended_by": 1,
  "0021_budgets": 21,
  // Replaces an index.
  "0022_open_runs": 1,
  "0027_run_records": 1
}

/**
 * Statements that set derived values after rows were copied with their numbers. These values are the sequences, the booking times of the newest rows,
 * and the counts of budgets.
 */
export const settle: ReadonlyArray<string> = [
  `SELECT setval('tollgate_ledger_accounts_seq', COALESCE(max(number), 0) + 1, false) FROM tollgate_ledger_accounts`,
  `SELECT setval('tollgate_ledger_entries_seq', COALESCE(max(seq), 0) + 1, false) FROM tollgate_ledger_entries`,
  `SELECT setval('tollgate_usage_records_seq', COALESCE(max(seq), 0) + 1, false) FROM tollgate_usage_records`,
  `UPDATE tollgate_ledger_amounts a SET booked_at = e.at FROM tollgate_ledger_entries e WHERE e.seq = a.newest AND a.booked_at <> e.at`,
  `UPDATE tollgate_usage_heads h SET booked_at = r.at FROM tollgate_usage_records r WHERE r.seq = h.newest AND h.booked_at <> r.at`,
  `UPDATE tollgate_ledger_amounts m SET limits = l.n
    FROM (SELECT a.number, count(*) AS n FROM tollgate_ledger_budgets k JOIN tollgate_ledger_accounts a ON a.tenant_id = k.tenant_id GROUP BY 1) l
    WHERE m.account = l.number AND m.limits <> l.n`,
  `UPDATE tollgate_usage_heads h SET limits = l.n
    FROM (SELECT t.number, count(*) AS n FROM tollgate_ledger_budgets k JOIN tollgate_usage_tenants t ON t.id = k.tenant_id GROUP BY 1) l
    WHERE h.tenant = l.number AND h.limits <> l.n`
]
