/** Serializes amounts exactly as typed, because a double might not represent them. */

/** Converts a typed decimal to JSON syntax, which allows neither `.5` nor `5.`. */
export const decimal = (text: string): string => {
  const [whole = "", fraction = ""] = text.trim().split(".")
  return `${whole.replace(/^0+(?=\d)/, "") || "0"}${fraction === "" ? "" : `.${fraction}`}`
}

const mark = "\uE000"

/** Returns a body serializer that writes the numbers in these fields with their exact digits. */
export const serializer =
  (typed: Readonly<Record<string, string>>) =>
  (body: unknown): string =>
    JSON.stringify(body, (name, value: unknown) => {
      const digits = typed[name]
      return typeof value === "number" && digits !== undefined && /^\d+(\.\d+)?$/.test(digits)
        ? `${mark}${digits}${mark}`
        : value
    }).replace(new RegExp(`"${mark}([0-9.]+)${mark}"`, "g"), "$1")
