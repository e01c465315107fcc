class Whole
{
    void Works() { }
}

class Half
{
    void Lost(int a
    {
        if (a
}

class After { void Works() { } }
