namespace Geo.Scoped;

static class Extensions
{
    public static bool IsEmpty(this string text) => text.Length == 0;
}
