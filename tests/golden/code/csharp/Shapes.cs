using System;
using System.Collections.Generic;

namespace Geo.Shapes
{
    /// <summary>Anything that can be drawn.</summary>
    public interface IShape
    {
        double Area { get; }
        void Draw(Canvas canvas);
    }

    public enum Color { Red, Green }

    public delegate void Changed(object sender, int count);

    // A point.
    internal struct Point
    {
        public int X, Y;
    }

    public record Named(string Name, int Age);

    /// <summary>
    /// A shape that has corners.
    /// </summary>
    [Serializable]
    public abstract class Polygon<T> : IShape where T : struct
    {
        private const int Limit = 8, Least = 3;
        public static readonly string Unit = "m";
        private readonly List<T> corners = new();

        protected Polygon(List<T> corners) : this()
        {
            this.corners = corners;
        }

        ~Polygon() { }

        public double Area => Measure();
        public int Count { get; private set; }
        public event Changed OnChange;

        /// Measures it.
        protected abstract double Measure();

        public async Task<int> LoadAsync(string path)
        {
            int Local(int x) => x + 1;
            return Local(await Read(path));
        }

        void IShape.Draw(Canvas canvas) => canvas.Draw(this);

        internal static Polygon<T> operator +(Polygon<T> one, Polygon<T> other) => one;
        public static implicit operator bool(Polygon<T> one) => true;

        private class Größe { }
    }
}
