/**
 * The requirements of FOCUS 1.2 for the columns of a cost and usage dataset, restated as a table, and a check of rows against it. The source is the
 * specification's text for version 1.2 (its columns and its attributes: null handling, numeric, date/time, currency, unit, key-value and column
 * handling). Rules for columns that an export leaves out, such as commitments and capacity reservations, are not in the table.
 */

export type FocusRow = Readonly<Record<string, string>>

interface Column {
  readonly level: "mandatory" | "conditional" | "recommended"
  readonly type: "decimal" | "text" | "time" | "currency" | "unit" | "object"
  /** Whether the column may be null in a row of usage that is not a correction. */
  readonly nullable: boolean
  readonly allowed?: ReadonlyArray<string>
  readonly nonNegative?: true
}

const mandatory = { level: "mandatory", nullable: false } as const
const conditional = { level: "conditional", nullable: false } as const
const recommended = { level: "recommended", nullable: false } as const

export const focusColumns: Readonly<Record<string, Column>> = {
  BilledCost: { ...mandatory, type: "decimal" },
  BillingAccountId: { ...mandatory, type: "text" },
  BillingAccountName: { ...mandatory, type: "text" },
  BillingCurrency: { ...mandatory, type: "currency" },
  BillingPeriodEnd: { ...mandatory, type: "time" },
  BillingPeriodStart: { ...mandatory, type: "time" },
  ChargeCategory: { ...mandatory, type: "text", allowed: ["Usage", "Purchase", "Tax", "Credit", "Adjustment"] },
  ChargeClass: { ...mandatory, type: "text", nullable: true, allowed: ["Correction"] },
  ChargeDescription: { ...mandatory, type: "text" },
  ChargeFrequency: { ...recommended, type: "text", allowed: ["One-Time", "Recurring", "Usage-Based"] },
  ChargePeriodEnd: { ...mandatory, type: "time" },
  ChargePeriodStart: { ...mandatory, type: "time" },
  CommitmentDiscountStatus: { ...conditional, type: "text", nullable: true, allowed: ["Used", "Unused"] },
  ConsumedQuantity: { ...conditional, type: "decimal" },
  ConsumedUnit: { ...conditional, type: "unit" },
  ContractedCost: { ...mandatory, type: "decimal" },
  ContractedUnitPrice: { ...conditional, type: "decimal", nonNegative: true },
  EffectiveCost: { ...mandatory, type: "decimal" },
  InvoiceId: { ...recommended, type: "text", nullable: true },
  InvoiceIssuerName: { ...mandatory, type: "text" },
  ListCost: { ...mandatory, type: "decimal" },
  ListUnitPrice: { ...conditional, type: "decimal", nonNegative: true },
  PricingCategory: { ...conditional, type: "text", allowed: ["Standard", "Dynamic", "Committed", "Other"] },
  PricingQuantity: { ...mandatory, type: "decimal" },
  PricingUnit: { ...mandatory, type: "unit" },
  ProviderName: { ...mandatory, type: "text" },
  PublisherName: { ...mandatory, type: "text" },
  RegionId: { ...conditional, type: "text", nullable: true },
  RegionName: { ...conditional, type: "text", nullable: true },
  ResourceId: { ...conditional, type: "text", nullable: true },
  ResourceName: { ...conditional, type: "text", nullable: true },
  ResourceType: { ...conditional, type: "text", nullable: true },
  ServiceCategory: {
    ...mandatory,
    type: "text",
    allowed: [
      "AI and Machine Learning",
      "Analytics",
      "Business Applications",
      "Compute",
      "Databases",
      "Developer Tools",
      "Multicloud",
      "Identity",
      "Integration",
      "Internet of Things",
      "Management and Governance",
      "Media",
      "Migration",
      "Mobile",
      "Networking",
      "Security",
      "Storage",
      "Web",
      "Other"
    ]
  },
  ServiceName: { ...mandatory, type: "text" },
  ServiceSubcategory: {
    ...recommended,
    type: "text",
    // Those of the category AI and Machine Learning.
    allowed: [
      "AI Platforms",
      "Bots",
      "Generative AI",
      "Machine Learning",
      "Natural Language Processing",
      "Other (AI and Machine Learning)"
    ]
  },
  SkuId: { ...conditional, type: "text" },
  SkuMeter: { ...conditional, type: "text" },
  SkuPriceDetails: { ...conditional, type: "object", nullable: true },
  SkuPriceId: { ...conditional, type: "text" },
  SubAccountId: { ...conditional, type: "text", nullable: true },
  SubAccountName: { ...conditional, type: "text", nullable: true },
  Tags: { ...conditional, type: "object", nullable: true }
}

/** Numbers have no plus sign, no separators and no units; a positive exponent has no sign. */
const decimal = /^-?\d+(?:\.\d+)?(?:E-?\d+)?$/
/** Times are in UTC, without fractions of a second. */
const time = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/
const countUnit = "[A-Z][A-Za-z0-9]*(?: [A-Z][A-Za-z0-9]*)*"
const unit = new RegExp(`^(?:\\d+ )?${countUnit}(?:/(?:Year|Month|Day|Hour|Minute|Second))?$`)
/** Words that stand for a missing value. */
const placeholder = /^(?:null|none|n\/a|na|not applicable|undefined|nan)$/i

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isObject = (text: string): boolean => {
  const value = parsed(text)
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((one) => ["string", "number", "boolean"].includes(typeof one) || one === null)
  )
}

const isOfType = (text: string, type: Column["type"]): boolean => {
  switch (type) {
    case "decimal":
      return decimal.test(text)
    case "time":
      return time.test(text) && new Date(text).toISOString() === text.replace("Z", ".000Z")
    case "currency":
      return /^[A-Z]{3}$/.test(text)
    case "unit":
      return unit.test(text)
    case "object":
      return isObject(text)
    case "text":
      return text.trim() !== "" && !placeholder.test(text)
  }
}

/** A decimal as an integer of 10^-36; `undefined` if the text is none. */
const exact = (text = ""): bigint | undefined => {
  const found = /^(-?)(\d+)(?:\.(\d{1,36}))?$/.exec(text)
  if (found === null) return undefined
  const [, sign, whole, fraction = ""] = found
  return BigInt(`${sign}${whole}${fraction.padEnd(36, "0")}`)
}

const isProduct = (one: string | undefined, other: string | undefined, result: string | undefined): boolean => {
  const [a, b, c] = [exact(one), exact(other), exact(result)]
  return a !== undefined && b !== undefined && c !== undefined && a * b === c * 10n ** 36n
}

/** Names the rules for a header that it breaks. */
export const headerFaults = (header: ReadonlyArray<string>): ReadonlyArray<string> => {
  const own = header.findIndex((name) => name.startsWith("x_"))
  return [
    ...Object.keys(focusColumns).flatMap((name) => (header.includes(name) ? [] : [`${name} is missing`])),
    ...header.flatMap((name) =>
      Object.hasOwn(focusColumns, name) || /^x_[A-Z][A-Za-z0-9]*$/.test(name)
        ? []
        : [`${name} is neither a column of FOCUS nor a custom one`]
    ),
    ...header.flatMap((name) => (name.length > 50 ? [`${name} is longer than 50 characters`] : [])),
    ...(new Set(header).size === header.length ? [] : ["a column occurs twice"]),
    ...(own >= 0 && header.slice(own).some((name) => !name.startsWith("x_")) ? ["custom columns are not last"] : [])
  ]
}

/** Rules that connect the columns of a row of usage: each has a name, and whether the row meets it. */
const rules: Readonly<Record<string, (row: FocusRow) => boolean>> = {
  "usage is billed by usage": (row) => row["ChargeCategory"] === "Usage" && row["ChargeFrequency"] === "Usage-Based",
  "the currency is a national one": (row) => row["BillingCurrency"] === "USD",
  "the billing period is not empty": (row) => row["BillingPeriodStart"]! < row["BillingPeriodEnd"]!,
  "the charge period is not empty": (row) => row["ChargePeriodStart"]! < row["ChargePeriodEnd"]!,
  "the charge period is in the billing period": (row) =>
    row["BillingPeriodStart"]! <= row["ChargePeriodStart"]! && row["ChargePeriodEnd"]! <= row["BillingPeriodEnd"]!,
  // It must be 0 where a third party receives the payment, as on a marketplace.
  "the provider issues the invoice": (row) => row["ProviderName"] === row["InvoiceIssuerName"],
  "list cost = list price × quantity": (row) =>
    isProduct(row["ListUnitPrice"], row["PricingQuantity"], row["ListCost"]),
  "contracted cost = contracted price × quantity": (row) =>
    isProduct(row["ContractedUnitPrice"], row["PricingQuantity"], row["ContractedCost"]),
  "the effective cost of usage without commitments is the billed cost": (row) =>
    row["EffectiveCost"] === row["BilledCost"],
  "usage without a correction has a category of pricing": (row) => row["PricingCategory"] === "Standard",
  "a unit stands beside each quantity": (row) =>
    (row["PricingQuantity"] === "") === (row["PricingUnit"] === "") &&
    (row["ConsumedQuantity"] === "") === (row["ConsumedUnit"] === ""),
  "a region has a name": (row) => (row["RegionId"] === "") === (row["RegionName"] === ""),
  "a sub account has a name": (row) => (row["SubAccountId"] === "") === (row["SubAccountName"] === ""),
  "a resource name does not repeat the id": (row) =>
    row["ResourceName"] === "" || (row["ResourceId"] !== "" && row["ResourceName"] !== row["ResourceId"]),
  "a resource has a type": (row) => (row["ResourceId"] === "") === (row["ResourceType"] === ""),
  "a price belongs to a SKU with a meter": (row) =>
    row["SkuPriceId"] !== "" && row["SkuId"] !== "" && row["SkuMeter"] !== "",
  "properties of a price that FOCUS does not define begin with x_": (row) =>
    row["SkuPriceDetails"] === "" ||
    Object.keys(JSON.parse(row["SkuPriceDetails"]!)).every((key) => key.startsWith("x_"))
}

/** Names the rules that a row breaks. */
export const rowFaults = (row: FocusRow): ReadonlyArray<string> => [
  ...Object.entries(focusColumns).flatMap(([name, { allowed, nonNegative, nullable, type }]) => {
    const text = row[name] ?? ""
    if (text === "") return nullable ? [] : [`${name} is null`]
    return [
      ...(isOfType(text, type) ? [] : [`${name} is no ${type}: ${text}`]),
      ...(allowed === undefined || allowed.includes(text) ? [] : [`${name} must not be ${text}`]),
      ...(nonNegative === true && text.startsWith("-") ? [`${name} is negative`] : [])
    ]
  }),
  ...Object.entries(rules).flatMap(([name, holds]) => (holds(row) ? [] : [`not so: ${name}`]))
]

/** Each value of the first column goes with one value of the second. */
const oneEach = [
  ["ServiceName", "ServiceCategory"],
  ["ServiceName", "ServiceSubcategory"],
  ["SkuPriceId", "SkuId"],
  ["SkuPriceId", "ListUnitPrice"],
  ["SkuPriceId", "PricingUnit"],
  ["SkuId", "SkuMeter"]
] as const

/** Names the rules that rows break together. */
export const datasetFaults = (rows: ReadonlyArray<FocusRow>): ReadonlyArray<string> =>
  oneEach.flatMap(([one, other]) => {
    const known = new Map<string, string>()
    return rows.flatMap((row) => {
      const before = known.get(row[one]!) ?? row[other]!
      known.set(row[one]!, before)
      return before === row[other] ? [] : [`${one} ${row[one]} has two values of ${other}`]
    })
  })
