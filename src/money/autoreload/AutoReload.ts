/** Schemas and validation of auto-reload and alert settings, and the state that results from past attempts. */
import { Either, Schema } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { Moment } from "../../kernel/Moment.ts"
import { amountMax, cent, Usd, usd } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import { CreditAmount, creditRule, isCreditAmount, WholeCredits } from "../payments/Payment.ts"

/** The minimum time between charge attempts, in milliseconds. */
export const cooldown = 600_000
/** Auto-reload is disabled after this many consecutive failed charges. */
export const failuresMax = 3

export const State = Schema.Literal("idle", "in_flight", "cooldown", "failed", "disabled")
export type State = typeof State.Type

export const AutoReload = Schema.Struct({
  /** Whether the deployment has a processor and the tenant chose a payment method. */
  configured: Schema.Boolean,
  auto_reload: Schema.Struct({
    enabled: Schema.Boolean,
    threshold_usd: Usd,
    amount_credits: WholeCredits,
    payment_method_id: Schema.NullOr(Schema.String),
    state: State,
    last_charged_at: Schema.NullOr(Moment),
    last_error: Schema.NullOr(Schema.String),
    disabled_reason: Schema.NullOr(Schema.String),
    in_flight_started_at: Schema.NullOr(Moment),
    /** Consecutive failed charges. The third one disables auto-reload. */
    failures: Schema.Int,
    /** The earliest time of the next charge. Null if a charge may begin now, or as soon as the charge in flight ends. */
    free_at: Schema.NullOr(Moment)
  }),
  alerts: Schema.Struct({
    enabled: Schema.Boolean,
    warn_threshold_usd: Schema.NullOr(Usd),
    rearm_threshold_usd: Schema.NullOr(Usd)
  }),
  /**
   * Whether an alert was sent. Before the next alert, the balance must rise above `rearm_threshold_usd`. The field is outside `alerts` because
   * clients send `alerts` back unchanged.
   */
  alerts_warned: Schema.Boolean
}).annotations({ identifier: "AutoReload" })
export interface AutoReload extends Schema.Schema.Type<typeof AutoReload> {}

const thresholdRule = "must be an amount from 0.01 to 10000 USD"
const isThreshold = (amount: Nano): boolean => amount >= cent && amount <= 10_000n * usd
const Threshold = Usd.pipe(Schema.filter(isThreshold, { message: () => thresholdRule }))

const alertRule = "must be an amount from 0 to 1000000000 USD"
const isAlertThreshold = (amount: Nano): boolean => amount >= 0n && amount <= amountMax
const AlertThreshold = Usd.pipe(Schema.filter(isAlertThreshold, { message: () => alertRule }))

/** The body of a PUT. It replaces all settings. Unknown fields are rejected. */
export const AutoReloadChange = Schema.Struct({
  auto_reload: Schema.Struct({
    enabled: Schema.Boolean,
    threshold_usd: Schema.optionalWith(Threshold, { default: () => 2n * usd }),
    amount_credits: Schema.optionalWith(CreditAmount, { default: () => 10n * usd }),
    payment_method_id: Schema.optionalWith(Schema.NullOr(Schema.String), { default: () => null })
  }),
  alerts: Schema.optionalWith(
    Schema.Struct({
      enabled: Schema.Boolean,
      warn_threshold_usd: Schema.optionalWith(Schema.NullOr(AlertThreshold), { default: () => null }),
      rearm_threshold_usd: Schema.optionalWith(Schema.NullOr(AlertThreshold), { default: () => null })
    }),
    { default: () => ({ enabled: false, warn_threshold_usd: null, rearm_threshold_usd: null }) }
  )
}).annotations({ identifier: "AutoReloadChange", parseOptions: { onExcessProperty: "error" } })
export interface AutoReloadChange extends Schema.Schema.Type<typeof AutoReloadChange> {}

/**
 * Checks a change, including one from an embedder. Thresholds and amount must be within their limits, enabled alerts need a threshold, and
 * `rearm_threshold_usd` must not be lower than that threshold.
 */
export const checked = (change: AutoReloadChange): Either.Either<AutoReloadChange, InvalidRequest> => {
  const wrong = (field: string, rule: string) => Either.left(InvalidRequest.of(field, rule))
  const { amount_credits, threshold_usd } = change.auto_reload
  if (!isThreshold(threshold_usd)) return wrong("auto_reload.threshold_usd", thresholdRule)
  if (!isCreditAmount(amount_credits)) return wrong("auto_reload.amount_credits", creditRule)
  const { enabled, rearm_threshold_usd: rearm, warn_threshold_usd: warn } = change.alerts
  if (!(warn === null || isAlertThreshold(warn))) return wrong("alerts.warn_threshold_usd", alertRule)
  if (!(rearm === null || isAlertThreshold(rearm))) return wrong("alerts.rearm_threshold_usd", alertRule)
  if (!enabled) return Either.right(change)
  if (warn === null) return wrong("alerts.warn_threshold_usd", "must be set while alerts are enabled")
  if (rearm !== null && rearm < warn) {
    return wrong("alerts.rearm_threshold_usd", "must not be below warn_threshold_usd")
  }
  return Either.right(change)
}

/** A tenant's row: its settings and the outcomes of its attempts. */
export interface StoredSettings {
  readonly enabled: boolean
  readonly threshold: Nano
  /** The amount that one reload buys. */
  readonly amount: Nano
  readonly payment_method_id: string | null
  readonly attempt: string | null
  readonly in_flight_started_at: number | null
  readonly last_attempt_at: number | null
  readonly last_charged_at: number | null
  /** Whether the last attempt failed and the settings have not changed since. */
  readonly last_failed: boolean
  readonly last_error: string | null
  readonly failures: number
  readonly disabled_reason: string | null
  readonly alerts_enabled: boolean
  readonly warn_threshold: Nano | null
  readonly rearm_threshold: Nano | null
  readonly warned: boolean
  /** The last saved balance. Checks, alerts, attempts and settings changes save it. Null before the first of these. */
  readonly looked: Nano | null
  /** Whether the balance fell below the threshold while no attempt could begin. */
  readonly fell: boolean
  readonly updated_at: number
}

/** The settings of a tenant that has never changed them. */
export const unset: StoredSettings = {
  enabled: false,
  threshold: 2n * usd,
  amount: 10n * usd,
  payment_method_id: null,
  attempt: null,
  in_flight_started_at: null,
  last_attempt_at: null,
  last_charged_at: null,
  last_failed: false,
  last_error: null,
  failures: 0,
  disabled_reason: null,
  alerts_enabled: false,
  warn_threshold: null,
  rearm_threshold: null,
  warned: false,
  looked: null,
  fell: false,
  updated_at: 0
}

export const isCooling = ({ last_attempt_at, last_charged_at }: StoredSettings, now: number): boolean =>
  now < cooledAt({ last_attempt_at, last_charged_at })

/** Returns the earliest time of the next attempt. */
export const cooledAt = ({
  last_attempt_at,
  last_charged_at
}: Pick<StoredSettings, "last_attempt_at" | "last_charged_at">) =>
  Math.max(last_attempt_at ?? -cooldown, last_charged_at ?? -cooldown) + cooldown

export const stateOf = (settings: StoredSettings, now: number): State => {
  if (!settings.enabled) return "disabled"
  if (settings.attempt !== null) return "in_flight"
  if (settings.last_failed) return "failed"
  return settings.last_charged_at !== null && now < settings.last_charged_at + cooldown ? "cooldown" : "idle"
}
