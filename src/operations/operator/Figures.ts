/** Schemas for the operator's monitoring: money in flight, background work, verifications and live figures. */
import { Schema } from "effect"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { NodeFigures } from "../ops/Node.ts"

export const MoneyInFlight = Schema.Struct({
  at: Moment,
  /** The responding node; null on SQLite. `unsettled` counts only its calls. */
  node: Schema.NullOr(Schema.String),
  reserved: Usd,
  open_calls: Schema.Int,
  oldest_at: Schema.NullOr(Moment),
  /** Ended calls that are not yet settled in the database. */
  unsettled: Schema.Int,
  escrowed: Usd,
  pending_transfers: Schema.Int,
  /** Open reservations that are at least `from_seconds` but less than `to_seconds` old. */
  ages: Schema.Array(
    Schema.Struct({
      from_seconds: Schema.Int,
      to_seconds: Schema.NullOr(Schema.Int),
      calls: Schema.Int,
      amount: Usd
    })
  ),
  /** Pending transfers by age, in whole UTC days. */
  escrow_ages: Schema.Array(
    Schema.Struct({
      from_days: Schema.Int,
      to_days: Schema.NullOr(Schema.Int),
      transfers: Schema.Int,
      amount: Usd
    })
  ),
  /** Debts: refunded and disputed amounts that the balances could not cover. */
  owed: Usd
}).annotations({ identifier: "OperatorFlight" })
export interface MoneyInFlight extends Schema.Schema.Type<typeof MoneyInFlight> {}

export const ReservationLine = Schema.Struct({
  id: Schema.String,
  at: Moment,
  amount: Usd,
  tenant_id: Schema.String,
  tenant_name: Schema.NullOr(Schema.String),
  account_id: Schema.String,
  payer_tenant_id: Schema.String,
  payer_tenant_name: Schema.NullOr(Schema.String),
  model: Schema.String,
  provider: Schema.String,
  endpoint: Schema.String,
  run: Schema.String,
  /**
   * Whether the process that admitted the call is alive, or a job keeps the call open. Reservations of dead processes are released within a minute.
   */
  node_alive: Schema.Boolean
}).annotations({ identifier: "OperatorReservation" })
export interface ReservationLine extends Schema.Schema.Type<typeof ReservationLine> {}

export const Owed = Schema.Struct({
  owed: Schema.Array(
    Schema.Struct({
      payment_id: Schema.String,
      tenant_id: Schema.String,
      tenant_name: Schema.NullOr(Schema.String),
      owed: Usd
    })
  ),
  /** Refunds and disputes for unknown payments. */
  waiting: Schema.Array(Schema.Struct({ payment_id: Schema.String, movements: Schema.Int, since: Moment }))
}).annotations({ identifier: "OperatorOwed" })
export interface Owed extends Schema.Schema.Type<typeof Owed> {}

export const Work = Schema.Struct({
  node: Schema.NullOr(NodeFigures),
  loops: Schema.Array(
    Schema.Struct({
      loop: Schema.String,
      running: Schema.Boolean,
      last_turn_at: Schema.NullOr(Moment),
      /** The time of the next iteration; null if the loop is waiting to be woken. */
      next_turn_at: Schema.NullOr(Moment),
      seconds_since_good: Schema.Number,
      failures: Schema.Int,
      /** Why the loop is stuck, late, stopped or failing; null if it is healthy. */
      trouble: Schema.NullOr(Schema.String)
    })
  ),
  /** Unfinished generation jobs, by state. */
  jobs: Schema.Array(
    Schema.Struct({ kind: Schema.Literal("media"), status: Schema.String, count: Schema.Int, oldest_at: Moment })
  ),
  outbox: Schema.Struct({ waiting: Schema.Int, oldest_at: Schema.NullOr(Moment) })
}).annotations({ identifier: "OperatorWork" })
export interface Work extends Schema.Schema.Type<typeof Work> {}

/** A verification. `entry` and `record` identify the last rows that it read. */
export const Verification = Schema.Struct({
  at: Moment,
  whole: Schema.Boolean,
  findings: Schema.Int,
  millis: Schema.Int,
  entry: Schema.Int,
  record: Schema.Int
}).annotations({ identifier: "OperatorVerification" })
export interface Verification extends Schema.Schema.Type<typeof Verification> {}

const Finding = Schema.Struct({ check: Schema.String, message: Schema.String })

export const Verifications = Schema.Struct({
  /** The verification that is running in the responding process. */
  running: Schema.NullOr(Schema.Struct({ began_at: Moment, whole: Schema.Boolean, rows: Schema.Int, of: Schema.Int })),
  last: Schema.NullOr(Verification),
  last_held: Schema.NullOr(Verification),
  recent: Schema.Array(Verification),
  /** An upper bound on the rows added since the last verification without findings. */
  behind: Schema.Struct({ entries: Schema.Int, records: Schema.Int }),
  /** The first findings of the last verification in the responding process. */
  found: Schema.Array(Finding)
}).annotations({ identifier: "OperatorVerifications" })
export interface Verifications extends Schema.Schema.Type<typeof Verifications> {}

export const NewVerification = Schema.Struct({
  /** `true` checks all rows; `false` checks only rows added since the last verification without findings. */
  whole: Schema.optionalWith(Schema.Boolean, { default: () => false })
}).annotations({ identifier: "OperatorNewVerification" })

export const InvariantChecks = Schema.Struct({
  at: Moment,
  millis: Schema.Int,
  checks: Schema.Array(
    Schema.Struct({ name: Schema.String, holds: Schema.Boolean, findings: Schema.Array(Schema.String) })
  )
}).annotations({ identifier: "OperatorInvariants" })
export interface InvariantChecks extends Schema.Schema.Type<typeof InvariantChecks> {}

export const LiveFigures = Schema.Struct({
  at: Moment,
  /** The calls per second on all nodes since the previous figures. */
  calls_per_second: Schema.Number,
  reserved: Usd,
  open_calls: Schema.Int,
  escrowed: Usd,
  /** The unsettled calls of the responding node. */
  unsettled: Schema.Int,
  loops: Schema.Array(Schema.Struct({ loop: Schema.String, trouble: Schema.NullOr(Schema.String) }))
}).annotations({ identifier: "OperatorLiveFigures" })
export interface LiveFigures extends Schema.Schema.Type<typeof LiveFigures> {}
