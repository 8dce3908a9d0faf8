/** Amounts with the digits that were typed, which a double may not hold. */

/** A decimal text as JSON takes it: `.5` and `5.` are none. */
export const decimal = (text: string): string => {
  const [whole = "", fraction = ""] = text.trim().split(".")
  return `${whole.replace(/^0+(?=\d)/, "") || "0"}${fraction === "" ? "" : `.${fraction}`}`
}

const mark = "\uE000"

/** Writes a body whose numbers of these names have the typed digits. */
export const serializer =
  (typed: Readonly<Record<string, string>>) =>
  (body: unknown): string =>
    JSON.stringify(body, (name, value: unknown) => {
      const digits = typed[name]
      return typeof value === "number" && digits !== undefined && /^\d+(\.\d+)?$/.test(digits)
        ? `${mark}${digits}${mark}`
        : value
    }).replace(new RegExp(`"${mark}([0-9.]+)${mark}"`, "g"), "$1")
