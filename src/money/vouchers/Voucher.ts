/** Schemas for vouchers (codes worth credit), and the format of the codes. */
import { Schema } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { Amount } from "../../kernel/Amount.ts"
import { TenantId } from "../../kernel/Ids.ts"
import { Moment } from "../../kernel/Moment.ts"
import { Usd } from "../../kernel/Money.ts"
import { StoredText } from "../../kernel/StoredText.ts"

export const VoucherId = Schema.String.pipe(Schema.brand("VoucherId"))
export type VoucherId = typeof VoucherId.Type

/** The maximum number of codes per request, and of tenants that may redeem one code. */
export const countMax = 1_000
export const usesMax = 1_000_000

const upTo = (max: number) =>
  Schema.Int.pipe(Schema.between(1, max, { message: () => `must be a whole number from 1 to ${max}` }))

/** A request for `count` codes. Each code is worth the amount once for each of `uses` tenants. */
export const NewVouchers = Schema.Struct({
  amount_usd: Amount,
  uses: Schema.optionalWith(upTo(usesMax), { default: () => 1 }),
  count: Schema.optionalWith(upTo(countMax), { default: () => 1 }),
  expires_at: Schema.optional(Moment),
  /** Shown in the ledger of a tenant that redeems the code. */
  description: Schema.optional(StoredText.pipe(Schema.minLength(1), Schema.maxLength(200)))
}).annotations({ identifier: "NewVouchers" })
export interface NewVouchers extends Schema.Schema.Type<typeof NewVouchers> {}

export const VoucherStatus = Schema.Literal("active", "used_up", "expired", "ended")

const voucher = {
  id: VoucherId,
  /** The first characters of the code. */
  code_prefix: Schema.String,
  amount_usd: Usd,
  uses: Schema.Int,
  uses_max: Schema.Int,
  status: VoucherStatus,
  description: Schema.String,
  created_at: Moment,
  expires_at: Schema.NullOr(Moment)
} as const

export const Voucher = Schema.Struct(voucher).annotations({ identifier: "Voucher" })
export interface Voucher extends Schema.Schema.Type<typeof Voucher> {}

/** A new voucher with its code, which is shown only once. */
export const CreatedVoucher = Schema.Struct({ ...voucher, code: Schema.String }).annotations({
  identifier: "CreatedVoucher"
})
export interface CreatedVoucher extends Schema.Schema.Type<typeof CreatedVoucher> {}

export const Redemption = Schema.Struct({
  code: Schema.String.pipe(Schema.maxLength(100)).annotations({
    description: "The code; case, spaces and dashes do not matter"
  })
}).annotations({ identifier: "Redemption" })
export interface Redemption extends Schema.Schema.Type<typeof Redemption> {}

export const Redeemed = Schema.Struct({ tenant_id: TenantId, amount_usd: Usd, balance: Usd }).annotations({
  identifier: "Redeemed"
})
export interface Redeemed extends Schema.Schema.Type<typeof Redeemed> {}

// ---- codes ------------------------------------------------------------------------------------------------------------

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const length = 20

/** Creates a code from 100 random bits in Crockford's base 32, in groups of five. */
export const makeCode = (): string =>
  Array.from(randomBytes(length), (byte, i) => `${i > 0 && i % 5 === 0 ? "-" : ""}${alphabet[byte % 32]!}`).join("")

/** Normalizes a code for comparison: removes separators and maps easily confused characters. */
const plain = (code: string): string =>
  code
    .toUpperCase()
    .replaceAll(/[^0-9A-Z]/g, "")
    .replaceAll("O", "0")
    .replaceAll(/[IL]/g, "1")

/** Hashes a code for storage. The hash needs no key, because a code has 100 random bits. Vouchers therefore survive a new deployment secret. */
export const hashOf = (code: string): string =>
  createHash("sha256")
    .update(`voucher ${plain(code)}`)
    .digest("hex")

export const prefixOf = (code: string): string => code.slice(0, 5)
