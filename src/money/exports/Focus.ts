/**
 * The export in the format of FOCUS 1.2 (FinOps Open Cost and Usage Specification, finops.org): a row per call and price line.
 *
 * Where the specification is silent:
 * - Columns without values are null. They exist because the requirements of other columns refer to them. Columns for capacity reservations and other
 *   currencies are absent. There are no regions and no invoices.
 * - FOCUS requires the product of quantity and unit price to equal the cost. Therefore, `ListCost` and `ContractedCost` are exact products with up to
 *   18 decimal places. `BilledCost` and `EffectiveCost` are the row's part of the charge in the ledger, exact to the nano-USD (`Billed`).
 *   `ListUnitPrice` is the price without the tenant's factor; `ContractedUnitPrice` includes that factor.
 * - The deployment is the provider and the invoice issuer, because it sells the calls. The publisher is the upstream that served the call.
 * - The billing period is the calendar month in UTC. A charge period is the second of the charge.
 * - `ServiceName` is `Model inference` or `Tools`, by the call's `usage_type`, because a service must belong to one subcategory.
 * - The resource is the model. The sub account is the account that called. Its name falls back to its address and then to its id.
 * - `SkuId` is the model and the meter (`small/prompt_tokens`, `tts-1/character`), with the threshold of a long-context price. `SkuPriceId` adds the
 *   list price, so it is the same for all tenants.
 * - Columns that begin with `x_` are the service's own: the usage id, the ledger entry, the exact time, the API key, the run, the end user, and so
 *   on.
 */
import { cell, quoted } from "../../kernel/CsvCell.ts"
import { monthOf, nextMonthOf, toIso } from "../../kernel/Moment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import * as Price from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { partsOf } from "./Billed.ts"
import type { Part } from "./Billed.ts"
import type { ExportedCall, ExportHead, RowFormat } from "./Export.ts"

/** The data of one row: a part of a call's charge. */
interface Row {
  readonly head: ExportHead
  readonly call: ExportedCall
  readonly part: Part
}

const second = 1_000
const startOfSecond = (millis: number): number => Math.floor(millis / second) * second

/** FOCUS's format of a time: without fractions of a second. */
const timeOf = (millis: number): string => `${toIso(startOfSecond(millis)).slice(0, -".000Z".length)}Z`

const plural = (word: string): string => {
  if (word.endsWith("s")) return word
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`
  return /(?:ch|sh|x|z)$/.test(word) ? `${word}es` : `${word}s`
}

/** The plural with a capital letter at the start of each word: `Prompt Tokens`. */
const unitName = (word: string): string => plural(word).replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())

const costOf = (price: UnitPrice, quantity: number): string => Price.toDecimal((price * BigInt(quantity)) as UnitPrice)

const skuOf = ({ call, part: { above, meter } }: Row): string =>
  `${call.model}/${meter}${above === undefined ? "" : `/above-${above}`}`

const services = {
  inference: { name: "Model inference", subcategory: "Generative AI", resource: "Model" },
  tool: { name: "Tools", subcategory: "Other (AI and Machine Learning)", resource: "Tool" }
} as const

const emptyCell = (): string => ""
const billedCost = ({ part }: Row): string => toDecimal(part.charge)
/** Quantities are whole numbers. The decimal place keeps readers that infer types from reading the column as integers. */
const quantity = ({ part }: Row): string => `${part.quantity}.0`
const unit = ({ part }: Row): string => cell(unitName(part.unit))
const serviceName = ({ head }: Row): string => cell(head.service_name)
/** A name may consist of spaces, which FOCUS does not accept. */
const memberName = ({ account_email, account_id, account_name }: ExportedCall): string =>
  [account_name, account_email].find((text) => text.trim() !== "") ?? account_id

/** The columns in order, each with its cell. An empty cell is null. */
const columns: Readonly<Record<string, (row: Row) => string>> = {
  BilledCost: billedCost,
  BillingAccountId: ({ head }) => cell(head.billing_account_id),
  BillingAccountName: ({ head }) => cell(head.tenant_name),
  BillingCurrency: () => "USD",
  BillingPeriodEnd: ({ call }) => timeOf(nextMonthOf(call.at)),
  BillingPeriodStart: ({ call }) => timeOf(monthOf(call.at)),
  ChargeCategory: () => "Usage",
  ChargeClass: emptyCell,
  ChargeDescription: ({ call, part }) => cell(`${call.model}: ${plural(part.word)} (${call.endpoint})`),
  ChargeFrequency: () => "Usage-Based",
  ChargePeriodEnd: ({ call }) => timeOf(call.at + second),
  ChargePeriodStart: ({ call }) => timeOf(call.at),
  CommitmentDiscountStatus: emptyCell,
  ConsumedQuantity: quantity,
  ConsumedUnit: unit,
  ContractedCost: ({ part }) => costOf(part.price, part.quantity),
  ContractedUnitPrice: ({ part }) => Price.toDecimal(part.price),
  EffectiveCost: billedCost,
  InvoiceId: emptyCell,
  InvoiceIssuerName: serviceName,
  ListCost: ({ part }) => costOf(part.list_price, part.quantity),
  ListUnitPrice: ({ part }) => Price.toDecimal(part.list_price),
  PricingCategory: () => "Standard",
  PricingQuantity: quantity,
  PricingUnit: unit,
  ProviderName: serviceName,
  PublisherName: ({ call }) => cell(call.provider),
  RegionId: emptyCell,
  RegionName: emptyCell,
  ResourceId: ({ call }) => cell(call.model),
  ResourceName: emptyCell,
  ResourceType: ({ call }) => services[call.usage_type].resource,
  ServiceCategory: () => "AI and Machine Learning",
  ServiceName: ({ call }) => services[call.usage_type].name,
  ServiceSubcategory: ({ call }) => services[call.usage_type].subcategory,
  SkuId: (row) => cell(skuOf(row)),
  SkuMeter: ({ part }) => cell(unitName(part.word)),
  SkuPriceDetails: ({ part: { above } }) =>
    above === undefined ? "" : quoted(JSON.stringify({ x_AbovePromptTokens: above })),
  SkuPriceId: (row) => cell(`${skuOf(row)}/${Price.toDecimal(row.part.list_price)}`),
  SubAccountId: ({ call }) => cell(call.account_id),
  SubAccountName: ({ call }) => cell(memberName(call)),
  Tags: ({ call }) => quoted(call.tags),
  x_UsageId: ({ call }) => cell(call.usage_id),
  x_LedgerEntryId: ({ call }) => cell(call.entry_id),
  x_ChargeTime: ({ call }) => toIso(call.at),
  x_Endpoint: ({ call }) => cell(call.endpoint),
  x_MemberEmail: ({ call }) => cell(call.account_email),
  x_ApiKeyId: ({ call }) => cell(call.application_id),
  x_ApiKeyName: ({ call }) => cell(call.application_name),
  x_RunId: ({ call }) => cell(call.run_id),
  x_EndUser: ({ call }) => cell(call.end_user),
  x_TenantId: ({ call }) => cell(call.tenant_id),
  x_RequestId: ({ call }) => cell(call.request_id),
  x_PriceVersion: ({ call }) => cell(call.price)
}

const cells = Object.values(columns)

export const focusFormat = (head: ExportHead): RowFormat => ({
  header: `${Object.keys(columns).join(",")}\r\n`,
  rows: (call) => {
    let text = ""
    for (const part of partsOf(call)) {
      const row: Row = { head, call, part }
      text += `${cells.map((cellOf) => cellOf(row)).join(",")}\r\n`
    }
    return text
  }
})
